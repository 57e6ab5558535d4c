"""Settings of Sphinx for the site; tools/build_site.py gives it the pages."""

project = "Modelport"
html_title = "Modelport"
extensions = ["myst_parser"]
root_doc = "index"
myst_heading_anchors = 4  # links to headings, with the names that GitHub gives them
highlight_language = "none"  # blocks without a language are commands and what they print
html_theme = "furo"  # brings its fonts and scripts along: nothing is asked of other hosts
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["filter.js"]
html_show_sphinx = False
html_copy_source = False
html_show_copyright = False
