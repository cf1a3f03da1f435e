#!/bin/bash
# Runs in an image of its own: of the agent there is nothing but its work, as a patch. The report decides, by test id,
# and neither the exit status nor the output of the tests, which the code under test can choose.
mkdir -p /logs/verifier
rm -f /logs/verifier/reward.txt /logs/verifier/reward.json /logs/verifier/junit.xml
reward=0
trap 'echo "$reward" > /logs/verifier/reward.txt' EXIT

cd @WORKDIR@ || exit 1
work=/logs/artifacts/work.patch
if [ ! -f "$work" ]; then
    echo "there is no $work"
    exit 1
fi
# Tests, and what configures them, stay those of this image.
if [ -s "$work" ]; then
    git apply --whitespace=nowarn @RULES@ "$work" || exit 1
fi
@TEST_PATCH@
@PYTHON@ -I /tests/run_tests.py /tests/ids.json /logs/verifier/junit.xml </dev/null
if "${OT_PYTHON:-python3}" -I /tests/grade.py /tests/ids.json /logs/verifier/junit.xml; then
    reward=1
fi
