#!/bin/bash
# Runs the tests as they were published and decides as their harness does, by the lines of their output, and by their
# exit status as well: both have to say that they passed.
mkdir -p /logs/verifier
rm -f /logs/verifier/reward.txt /logs/verifier/reward.json
reward=0
trap 'echo "$reward" > /logs/verifier/reward.txt' EXIT

export TEST_DIR=/tests
# To a file and through no pipe, which services that the tests start would keep open.
output=/logs/verifier/run-tests.txt
bash /tests/run-tests.sh </dev/null >"$output" 2>&1
status=$?
cat "$output"

passed=0
failed=0
inside=no
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
        @MARKS@
        PASSED*) [ "$inside" = no ] || passed=$((passed + 1)) ;;
        FAILED* | ERROR* | XPASS*) [ "$inside" = no ] || failed=$((failed + 1)) ;;
    esac
done <"$output"
echo "status $status, $passed passed, $failed failed"
if [ "$status" -eq 0 ] && [ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]; then
    reward=1
fi
