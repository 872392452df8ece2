"""Pages in a real browser, without a window: what it shows, and what is wrong with it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--enable-logging=stderr",
]

# What sticks out, what is cut, which labels of a chart lie on each other.
LAYOUT = """
const shown = e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
const texts = s => [...s.querySelectorAll('text')].filter(shown);
const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1
    || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
const overlaps = [];
for (const chart of document.querySelectorAll('svg')) {
  const all = texts(chart);
  all.forEach((a, i) => all.slice(i + 1).forEach(b => {
    if (!apart(a.getBoundingClientRect(), b.getBoundingClientRect()))
      overlaps.push(a.textContent + ' on ' + b.textContent);
  }));
}
const width = document.documentElement.clientWidth;
const outside = [...document.querySelectorAll('body *')].filter(e => !e.closest('pre') && shown(e)
    && e.getBoundingClientRect().right > width + 1).map(e => e.tagName + ' ' + e.textContent);
const cut = [...document.querySelectorAll('.figure, .scroll, h1, h2')]
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent);
for (const chart of document.querySelectorAll('svg')) {
  const frame = chart.getBoundingClientRect();
  texts(chart).forEach(e => { const r = e.getBoundingClientRect();
    if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.bottom > frame.bottom + 1)
      cut.push(e.textContent); });
}
for (const e of document.querySelectorAll('.figure b'))  // a number in two lines
  if (e.getBoundingClientRect().height > 2 * parseFloat(getComputedStyle(e).fontSize))
    cut.push(e.textContent);
for (const tiles of document.querySelectorAll('.figures.main')) {  // one alone below a full row
  const tops = [...tiles.children].map(e => e.getBoundingClientRect().top);
  const beside = top => tops.filter(t => t === top).length;
  if (beside(tops[0]) > 2 && beside(tops.at(-1)) === 1) cut.push(tiles.lastChild.textContent);
}
const found = {width, needed: document.documentElement.scrollWidth, overlaps, outside, cut};
"""


def browse(path: Path, *flags: str) -> tuple[str, list[str]]:
    """The page as the browser has it, and what it wrote to the console."""
    assert CHROMIUM is not None
    profile = f"--user-data-dir={path.parent / 'profile'}"
    done = subprocess.run(
        [CHROMIUM, *FLAGS, *flags, profile, path.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def colours(mode: str) -> str:
    """The flag for light or dark."""
    return f"--blink-settings=preferredColorScheme={0 if mode == 'dark' else 1}"


def probe(
    page: str, folder: Path, widths: tuple[int, ...], mode: str, axe: str | None = None
) -> dict[int, dict[str, Any]]:
    """What is wrong with the layout, and (given the source of axe-core) with access to the page.

    The page is shown once for each width, in frames of a page that collects what they report: the
    browser's own window cannot be as narrow as a phone.
    """
    rules = "const broken = [];"
    if axe is not None:
        rules = (
            "const broken = (await axe.run(document)).violations.map(v => v.id + ': '"
            " + v.nodes.map(n => n.html.slice(0, 120)).join(' | '));"
        )
    script = (
        f"<script>{axe or ''}</script><script>addEventListener('load', async () => {{ {LAYOUT} "
        f"{rules} parent.postMessage({{...found, broken}}, '*'); }});</script>"
    )
    inner = escape(page.replace("</body>", script + "</body>"))
    frames = "".join(
        f"<iframe width={w} height=900 style='border:0' srcdoc=\"{inner}\"></iframe>"
        for w in widths
    )
    collect = (
        "<pre id=probe></pre><script>const all = []; addEventListener('message', e => {"
        " all.push(e.data); probe.textContent = JSON.stringify(all); });</script>"
    )
    path = folder / f"probe_{mode}.html"
    path.write_text(collect + frames, encoding="utf-8")
    dom, _ = browse(path, "--dump-dom", "--virtual-time-budget=30000", colours(mode))
    told = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.DOTALL)
    assert told is not None, dom[-2000:]
    return {found["width"]: found for found in json.loads(unescape(told.group(1)))}
