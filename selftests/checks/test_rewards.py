"""What is said about the reward of a test script: the subtle ways in which it is lost, and in which it is not."""

from __future__ import annotations

import pytest

ONE, ZERO = "echo 1 > /logs/verifier/reward.txt", "echo 0 > /logs/verifier/reward.txt"
BY_STATUS = f"if [ $? -eq 0 ]; then {ONE}; else {ZERO}; fi"
RUN = "pytest /tests/test_outputs.py"
ALWAYS, STATUS, LOST, MISSING = "reward-unconditional", "reward-status-lost", "reward-lost-on-failure", "reward-missing"

SCRIPTS: list[tuple[str, str | None]] = [
    # A status that is kept.
    (f"{RUN}\n{BY_STATUS}", None),
    (f"{RUN}\ncode=$?\necho done\nif [ $code -eq 0 ]; then {ONE}; else {ZERO}; fi", None),
    (f"code=0\nset -e\n{RUN} || code=$?\nif [ $code -eq 0 ]; then {ONE}; else {ZERO}; fi", None),
    (f"set -e\nif {RUN}; then {ONE}; else {ZERO}; fi", None),
    (f"set -e\nif ! {RUN}; then {ZERO}; exit 0; fi\n{ONE}", None),
    (f"set -e\nset +e\n{RUN}\n{BY_STATUS}", None),
    (f"set -e\n{RUN} && {ONE} || {ZERO}", None),
    (f"{RUN} && {ONE} || {ZERO}", None),
    (f"out=\nout+=$({RUN} 2>&1)\ncode=$?\ncd ..\nif [ $code -eq 0 ]; then {ONE}; else {ZERO}; fi", None),
    (f"lines=($({RUN}))\n{BY_STATUS}", None),
    (f"r=0\n{RUN} && r=1\necho $r > /logs/verifier/reward.txt", None),
    (f"{RUN} | tee /tmp/log\n[ ${{PIPESTATUS[0]}} -eq 0 ] && r=1 || r=0\necho $r > /logs/verifier/reward.txt", None),
    (f"set -o pipefail\n{RUN} | tee /tmp/log\n{BY_STATUS}", None),
    (f"set -euo pipefail\n{RUN} 2>&1 | tee /tmp/log && {ONE} || {ZERO}", None),
    (f"( {RUN} )\n{BY_STATUS}", None),
    (f"run() {{ {RUN}; }}\nrun\n{BY_STATUS}", None),
    (f"give() {{ echo \"$1\" > /logs/verifier/reward.txt; }}\nif {RUN}; then give 1; else give 0; fi", None),
    (f"R=/logs/verifier/reward.txt\n{RUN}\n[[ $? == 0 ]] && echo 1 > $R || echo 0 > $R", None),
    (f"{RUN}\n(( $? == 0 )) && {ONE} || {ZERO}", None),
    (f"{RUN}\necho $(( $? == 0 ? 1 : 0 )) > /logs/verifier/reward.txt", None),
    (f"{RUN}\ncase $? in 0) {ONE};; *) {ZERO};; esac", None),
    (f"{ZERO}\nset -e\n{RUN}\n{ONE}", None),
    ("set -e\ntest -f /app/x || { " + ZERO + "; exit 0; }\n" + ONE, None),
    (f"if [ -f /app/answer.txt ]; then {ONE}; else {ZERO}; fi", None),
    (f"{ONE}\n{RUN} || {ZERO}", None),
    # Written by somebody else.
    ("python3 /tests/grade.py --out /logs/verifier/reward.txt", None),
    ("set -e\npython3 /tests/grade.py --out /logs/verifier\necho done", None),
    ("set -e\npython3 - <<'EOF'\nopen('/logs/verifier/reward.txt', 'w').write('0')\nassert False\nEOF", None),
    ("REWARD_FILE=/logs/verifier/reward.txt pytest /tests", None),
    (f"set -e\neval \"$COMMAND\"\n{ONE}", None),
    (f"/opt/verifier/run /logs/verifier/reward.txt || {ONE}", None),
    # On EXIT.
    (f"set -e\ntrap '[ -f /logs/verifier/reward.txt ] || {ZERO}' EXIT\n{RUN}\n{ONE}", None),
    (f"end() {{ code=$?; if [ $code -eq 0 ]; then {ONE}; else {ZERO}; fi; }}\ntrap end EXIT\nset -e\n{RUN}", None),
    (f"set -e\ntrap 'if [ ! -f /logs/verifier/reward.txt ]; then {ZERO}; fi' EXIT\n{RUN}\n{ONE}", None),
    (f"set -e\ntrap '{ZERO}; exit 1' ERR\n{RUN}\n{ONE}", None),
    # Guards and set-up in front of the tests.
    (f"set -e\nif ! command -v uvx; then\n  curl -Ls https://x.org/i.sh | sh\nfi\n{RUN} && {ONE} || {ZERO}", None),
    (f'if [ "$PWD" = "/" ]; then\n  echo no\n  exit 1\nfi\n{RUN}\n{BY_STATUS}', None),
    # Another decision than the status: doubt is no claim.
    (f"set +e\n{RUN} > /tmp/log\nif grep -q passed /tmp/log; then {ONE}; else {ZERO}; fi", None),
    (f"{RUN} > /tmp/x\nif grep failed /tmp/x; then {ZERO}; exit; fi\nif grep -q passed /tmp/x; then {ONE}; fi", None),
    (f"python3 /tests/prepare.py\n{RUN}\n{BY_STATUS}", None),
    ("n=0\nfor t in /tests/test_*.py; do pytest $t && n=$((n+1)); done\necho $n > /logs/verifier/reward.txt", None),
    # A reward whatever the tests say.
    (f"{RUN}\n{ONE}", ALWAYS),
    (ONE, ALWAYS),
    (f"{RUN}\necho done\n{BY_STATUS}", ALWAYS),
    (f"trap '{ONE}' EXIT\n{RUN}\n{BY_STATUS}", ALWAYS),
    (f"if {RUN}; then {ONE}; else {ONE}; fi", ALWAYS),
    ("printf '%s\\n' 1 > /logs/verifier/reward.txt", ALWAYS),
    ("echo '{\"reward\": 1.0}' > /logs/verifier/reward.json", ALWAYS),
    ("cat > /logs/verifier/reward.txt <<EOF\n1\nEOF", ALWAYS),
    ("echo 1 | tee /logs/verifier/reward.txt", ALWAYS),
    (f"r=1\n{RUN} || r=1\necho \"$r\" > /logs/verifier/reward.txt", ALWAYS),
    (f"{RUN} &\n{ONE}", ALWAYS),
    (f"{ZERO}\necho 1 > /logs/verifier/reward.json", ALWAYS),
    # A status that is thrown away.
    (f"{RUN} || true\n{BY_STATUS}", STATUS),
    (f"{RUN} || echo failed\n{BY_STATUS}", STATUS),
    (f"{RUN} | tee /tmp/log\n{BY_STATUS}", STATUS),
    (f"if {RUN} | tee /tmp/log; then {ONE}; else {ZERO}; fi", STATUS),
    # No reward where the tests fail.
    (f"set -e\n{RUN}\n{ONE}", LOST),
    (f"set -euo pipefail\n{RUN}\n{BY_STATUS}", LOST),
    (f"set -o errexit\n{RUN}\ncode=$?\nif [ $code -eq 0 ]; then {ONE}; else {ZERO}; fi", LOST),
    (f"set -euo pipefail\n{RUN} | tee /tmp/log\n{BY_STATUS}", LOST),
    (f"set -e\nout=$({RUN})\nif [ $? -eq 0 ]; then {ONE}; else {ZERO}; fi", LOST),
    (f"{RUN} && {ONE}", LOST),
    (f"if {RUN}; then {ONE}; fi", LOST),
    (f"{RUN} || exit 1\n{ONE}", LOST),
    (f"{ZERO}\nrm -f /logs/verifier/reward.txt\nset -e\n{RUN}\n{ONE}", LOST),
    (f"set -e\nif ! command -v uvx; then\n  curl -Ls https://x.org/i.sh | sh\nfi\n{RUN}\n{BY_STATUS}", LOST),
    ("set -e\npython3 - <<'EOF'\nassert open('/app/x').read()\nEOF\n" + ONE, LOST),
    # Nothing at all.
    (f"# /logs/verifier/reward.txt\n{RUN}", MISSING),
    (f"{ZERO} 2>/dev/null\nrm -rf /logs/verifier\n{RUN}", MISSING),
]  # fmt: skip


def reward_checks(look, text: str, edits: dict[str, object] | None = None, shebang: str = "#!/bin/bash") -> set[str]:
    found = look({"tests/test.sh": f"{shebang}\n{text}\n", **(edits or {})})
    return {one.check for one in found if one.check.startswith(("reward", "scripts"))}


@pytest.mark.parametrize(("text", "expected"), SCRIPTS)
def test_what_is_said(look, text, expected):
    assert reward_checks(look, text) == ({expected} if expected else set())


def test_errexit_of_the_shebang_counts(look):
    assert reward_checks(look, f"{RUN}\n{BY_STATUS}", shebang="#!/bin/bash -e") == {LOST}


def test_a_conftest_that_writes_the_reward_silences_claims(look):
    conftest = "def pytest_sessionfinish():\n    open('/logs/verifier/reward.txt', 'w').write('0')\n"
    assert reward_checks(look, f"set -e\n{RUN}\n{ONE}", {"tests/conftest.py": conftest}) == set()


def test_a_sourced_script_of_the_task_is_read(look):
    edits = {"tests/env.sh": "set -e\nOUT=/logs/verifier/reward.txt\n"}
    text = f'. "$(dirname "$0")/env.sh"\n{RUN}\n[ $? -eq 0 ] && echo 1 > $OUT || echo 0 > $OUT'
    assert reward_checks(look, text, edits) == {LOST}


def test_the_line_is_that_of_the_tests(look):
    found = look({"tests/test.sh": f"#!/bin/bash\nset -e\n\n{RUN}\n{ONE}\n"})
    assert [(one.check, one.line) for one in found] == [(LOST, 4)]


def test_one_step_that_only_hands_out_a_reward_is_no_error(look):
    toml = "".join(f'[[steps]]\nname = "{name}"\n' for name in ("one", "two"))
    steps = {f"steps/{name}/instruction.md": "Go.\n" for name in ("one", "two")}
    sound = f"#!/bin/bash\n{RUN}\n{BY_STATUS}\n"
    given = {"task.toml": toml, **steps, "steps/one/tests/test.sh": f"#!/bin/bash\n{ONE}\n"}
    one = [found for found in look({**given, "steps/two/tests/test.sh": sound}) if found.check == ALWAYS]
    assert [(found.path, found.severity) for found in one] == [("steps/one/tests/test.sh", "warning")]
