#!/bin/bash
sed -i s/41/42/ /app/mod.py
