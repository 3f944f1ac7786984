"""Two hundred strings that would run, break out or mislead if a page took them for markup."""

from __future__ import annotations

MARK = "owned"

PAYLOADS = [
    f"<script>window.{MARK}=1</script>",
    f"</script><script>window.{MARK}=1</script>",
    f"<img src=x onerror=window.{MARK}=1>",
    f'"><img src=x onerror="window.{MARK}=1">',
    f"'><svg onload=window.{MARK}=1>",
    f"<svg><script>window.{MARK}=1</script></svg>",
    f"</title><script>window.{MARK}=1</script>",
    f"</style><script>window.{MARK}=1</script>",
    f"</textarea><script>window.{MARK}=1</script>",
    f"--><script>window.{MARK}=1</script>",
    f"]]><script>window.{MARK}=1</script>",
    f"javascript:window.{MARK}=1",
    f"<a href='javascript:window.{MARK}=1'>x</a>",
    f"<iframe srcdoc='<script>parent.{MARK}=1</script>'>",
    f"<object data='javascript:{MARK}=1'>",
    f"<body onload=window.{MARK}=1>",
    f"<details open ontoggle=window.{MARK}=1>",
    f"<input autofocus onfocus=window.{MARK}=1>",
    f"<math><mtext><script>window.{MARK}=1</script>",
    f"<style>@import 'http://example.invalid/{MARK}.css';</style>",
    f"<link rel=stylesheet href=http://example.invalid/{MARK}.css>",
    f"<base href=http://example.invalid/{MARK}/>",
    f"<meta http-equiv=refresh content='0;url=http://example.invalid/{MARK}'>",
    f"<form action=http://example.invalid/{MARK}><button>",
    f"{{{{constructor.constructor('window.{MARK}=1')()}}}}",
    f"${{window.{MARK}=1}}",
    f"`;window.{MARK}=1;`",
    f"\\u003cscript\\u003ewindow.{MARK}=1",
    f"&lt;script&gt;window.{MARK}=1&lt;/script&gt;",
    f"&#60;script&#62;window.{MARK}=1",
    "\x00\x01\x02",
    "\u202egnp.exe",
    "\u2066\u2069",
    "\ufeff",
    "a\nb",
    "a\tb",
    "\r\n<b>",
    "'; DROP TABLE groups; --",
    '=HYPERLINK("http://example.invalid")',
    "x" * 5000,
    "<" * 300,
    '"' * 300,
    "é" * 200,
    "",
    " ",
    "\u200b",
    "%3Cscript%3E",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "&",
    "&&amp;",
    "<b",
    "</",
    "onclick=",
    "style=display:none",
    f"<p style='background:url(http://example.invalid/{MARK})'>",
    "نص",
    "日本語",
    "\U0001f600",
    "\ud7ff",
    "\ue000",
]
WRAPS = ["{}", "a{}b", '"{}', "{}'", "<!--{}"]

# What a string of the summary stands for is looked up by it, or it is a mark of the file.
FIXED = (
    "schema",
    "kind",
    "word",
    "sign",
    "op",
    "role",
    "letter",
    "group",
    "method",
    "structure",
    "status",
    "code",
)


def strings(n: int = 200) -> list[str]:
    """At least `n` different hostile strings."""
    made = list(
        dict.fromkeys(wrap.format(text) if "{" not in text else text for wrap in WRAPS for text in PAYLOADS)
    )
    assert len(made) >= n
    return made[:n]
