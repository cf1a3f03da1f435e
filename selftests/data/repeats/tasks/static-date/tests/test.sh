#!/bin/bash
answer=/app/answer.txt

if [ -f "$answer" ] && [ "$(head -c 100 "$answer")" = 42 ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
