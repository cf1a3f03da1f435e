#!/bin/bash
set -e
cd /usr/local/lib/python3.11/dist-packages
rm -r units units-1.0.dist-info
/usr/bin/python3 -m zipfile -e /srv/packages/units-2.0-py3-none-any.whl .
