"""Speeds as ratios in one run (`make bench`): what we do against the least that could be done."""
