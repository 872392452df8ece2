"""Sphinx configuration: `make docs` builds docs/_build/html, and any warning is an error."""

from importlib.metadata import version as _version

project = "exactcv"
author = "the exactcv authors"
copyright = author  # noqa: A001, the name is Sphinx's
release = version = _version("exactcv")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"plot_error_curve",  # the figure of the README
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "reference_url": {},
}
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
# No inventories: the build needs no network.
intersphinx_mapping: dict[str, tuple[str, None]] = {}

exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/*.py"]
html_theme = "furo"
html_title = f"exactcv {release}"
