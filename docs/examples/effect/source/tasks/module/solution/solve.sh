#!/bin/bash
cd /app && git apply /solution/fix.patch
