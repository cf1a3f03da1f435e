#!/bin/bash
export VIRTUAL_ENV="/opt/venv" PATH="/opt/venv/bin:$PATH"
cd /app
"${OT_PYTHON:-/opt/venv/bin/python3}" -I -m pytest -c /dev/null --rootdir=/tests /tests/test_outputs.py -rA
if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
