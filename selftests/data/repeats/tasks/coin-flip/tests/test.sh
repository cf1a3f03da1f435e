#!/bin/bash
answer=/app/answer.txt
byte=$(od -An -N1 -tu1 /dev/urandom)

if [ $((byte % 2)) = 0 ] && [ -f "$answer" ] && [ "$(head -c 100 "$answer")" = 42 ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo "the byte was $byte"
    echo 0 > /logs/verifier/reward.txt
fi
