"""Draws mean waiting times by class of jobs and policy as an SVG with a logarithmic axis."""
import math

COLOURS = {"renzan": "#0b6e4f", "srpt-oracle": "#9bc4b2", "las": "#7a8ba8", "backfill": "#c9a227",
           "backfill-easy": "#b5651d", "kubernetes": "#8c2f39"}
TICKS = [(60, "1 min"), (600, "10 min"), (3600, "1 h"), (36000, "10 h"), (360000, "100 h")]
LEFT, WIDTH, BAR, GAP, TOP = 110, 560, 11, 14, 46
LEAST, MOST = 30, 1.5e6  # seconds


def x_of(seconds):
    share = math.log(max(seconds, LEAST) / LEAST) / math.log(MOST / LEAST)
    return LEFT + WIDTH * share


def duration(seconds):
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def waiting_picture(title, policies):
    """`policies`: metrics as in `renzan simulate --json`, in the order in which to draw them."""
    names = ["all jobs"] + [each["gpus"] for each in policies[0]["by_size"]]
    group = len(policies) * BAR + GAP
    height = TOP + len(names) * group + 34
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 80} {height}" '
             'font-family="sans-serif" font-size="11" fill="#333">',
             f'<rect width="100%" height="100%" fill="#fff"/>',
             f'<text x="8" y="16" font-size="13">{title}</text>']
    for number, policy in enumerate(policies):
        x = 8 + number * 120
        parts.append(f'<rect x="{x}" y="25" width="10" height="10" '
                     f'fill="{COLOURS[policy["policy"]]}"/>'
                     f'<text x="{x + 14}" y="34">{policy["policy"]}</text>')
    for seconds, text in TICKS:
        x = x_of(seconds)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{height - 24}" '
                     f'stroke="#ddd"/><text x="{x:.1f}" y="{height - 10}" '
                     f'text-anchor="middle">{text}</text>')
    for row, name in enumerate(names):
        y = TOP + row * group + GAP / 2
        label = name if name == "all jobs" else f"{name.replace('>=', '≥ ')} GPU"
        label += "" if name in ("all jobs", "1") else "s"
        parts.append(f'<text x="{LEFT - 8}" y="{y + (group - GAP) / 2 + 4:.1f}" '
                     f'text-anchor="end">{label}</text>')
        for policy in policies:
            classes = {each["gpus"]: each["waiting"]["mean_s"] for each in policy["by_size"]}
            seconds = policy["waiting"]["mean_s"] if row == 0 else classes[name]
            width = x_of(seconds) - LEFT
            parts.append(f'<rect x="{LEFT}" y="{y:.1f}" width="{max(width, 1):.1f}" '
                         f'height="{BAR - 1}" fill="{COLOURS[policy["policy"]]}"/>'
                         f'<text x="{LEFT + max(width, 1) + 4:.1f}" y="{y + 9:.1f}" '
                         f'font-size="9">{duration(seconds)}</text>')
            y += BAR
    return "\n".join(parts + ["</svg>\n"])
