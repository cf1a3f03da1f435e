#!/bin/bash
# The report decides: an exit status can be forged by the code under test. $OT_PYTHON is the verifier's own Python where
# it has one, else the image's. Configuration and plugins that the agent may have left are out of play.
report=/logs/verifier/report.xml
python=${OT_PYTHON:-/usr/bin/python3}

cd /tests || exit
PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 "$python" -I -m pytest -c /dev/null --rootdir=/tests --noconftest \
    -p no:cacheprovider --junitxml="$report" /tests/test_units.py

if "$python" -I /tests/all_passed.py "$report"; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
