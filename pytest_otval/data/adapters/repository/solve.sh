#!/bin/bash
# Applies the whole reference patch.
set -euo pipefail
cd @WORKDIR@
git apply --whitespace=nowarn /solution/fix.patch
