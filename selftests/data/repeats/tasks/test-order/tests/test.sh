#!/bin/bash
cd /tests || exit
if python3 -m pytest -p no:cacheprovider /tests/test_numbers.py; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
