#!/bin/bash
grep -qx hello /app/greeting.txt
