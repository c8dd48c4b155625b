"""How the page looks: on a wide screen, on a phone, in the dark and on paper."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--paper:#ffffff;--ink:#20242a;--quiet:#5b6470;--line:#d9dde2;--accent:#0067a3}
@media (prefers-color-scheme:dark){
:root{--paper:#15181c;--ink:#e3e6ea;--quiet:#9aa4b0;--line:#343a42;--accent:#6cb8e8}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue","Liberation Sans",Arial,sans-serif}
main,header,nav,footer{max-width:58rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:2.5rem}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .3rem;letter-spacing:-.01em}
h2{font-size:1.25rem;line-height:1.3;margin:0 0 .5rem}
p{margin:0 0 .75rem;max-width:44rem}
a{color:var(--accent)}
.quiet,caption,footer{color:var(--quiet)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(7.5rem,1fr));gap:1rem 1.5rem;margin:1.5rem 0;
padding:1rem 0;border:solid var(--line);border-width:1px 0}
.facts div{display:flex;flex-direction:column}
.facts dt{color:var(--quiet);font-size:.85rem;line-height:1.3}
.facts dd{order:-1;margin:0;font-size:1.6rem;line-height:1.25;font-variant-numeric:tabular-nums}
nav ol{columns:17rem auto;column-gap:2rem;margin:0;padding:0 0 0 1.6rem;font-size:.95rem}
nav li{break-inside:avoid}
section{margin-top:2.75rem;padding-top:1.5rem;border-top:1px solid var(--line)}
.advice{padding-left:.9rem;border-left:3px solid var(--line)}
.advice b{font-weight:600}
figure{margin:1.25rem 0;overflow-x:auto}
figure svg{display:block;width:100%;min-width:26rem;max-width:48rem;height:auto;font-family:inherit}
figure svg *{stroke-linejoin:round;stroke-linecap:butt}
figure text{fill:currentColor}
.scroll{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;width:100%;font-size:.875rem;line-height:1.4}
caption{text-align:left;padding:0 0 .4rem;font-size:.875rem}
th,td{padding:.3rem .6rem .3rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th:last-child,td:last-child{padding-right:0}
th{font-weight:600;vertical-align:bottom;border-bottom-color:var(--quiet)}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.w{white-space:nowrap}
th.n,th.w{white-space:normal}
.t{overflow-wrap:anywhere;min-width:7.5rem}
footer{margin-top:3rem;padding-bottom:3rem;font-size:.85rem}
@media (max-width:40rem){body{font-size:15px}header{padding-top:1.5rem}.facts dd{font-size:1.3rem}}
@media print{
:root{--paper:#fff;--ink:#000;--quiet:#444;--line:#bbb;--accent:#000}
@page{margin:18mm 15mm}
body{font-size:10pt}
table{font-size:8pt}
.t{min-width:0}
main,header,nav,footer{max-width:none;padding:0}
section{margin-top:1.5rem;padding-top:1rem}
h2,caption{break-after:avoid}
figure,tr{break-inside:avoid}
thead{display:table-header-group}
figure svg{min-width:0;max-width:15cm}
.scroll,figure{overflow:visible}
}
"""
