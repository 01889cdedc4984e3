# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
"""Sphinx's settings: "./quickstart docs", or sphinx-build -b html docs DIR. Nothing but Sphinx itself is needed."""

import os
import subprocess

release = subprocess.check_output([os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "contrib", "version")], text=True).strip()

project = "umrddt"
author = "The umrddt authors"
copyright = "2026, The umrddt authors"  # pylint: disable=redefined-builtin # the name that Sphinx wants
version = release

extensions = []
exclude_patterns = []
# Blocks of commands are no program in one language.
highlight_language = "none"
html_theme = "alabaster"
html_theme_options = {"page_width": "68em", "sidebar_width": "15em", "font_family": "sans-serif"}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
html_show_sourcelink = False
html_copy_source = False
# -- for options of commands stays what it is.
smartquotes = False
nitpicky = True
