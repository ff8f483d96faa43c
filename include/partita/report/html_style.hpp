/// Style sheet and script of the report pages.
#pragma once

#include <string_view>

namespace partita::report_detail {

inline constexpr std::string_view page_style =
    R"(:root{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--line:#d1d9e0;--ground:#fff;--card:#f6f8fa;
--link:#0b5cad;--good:#1a7f37;--bad:#cf222e}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa4b0;--line:#30363d;--ground:#0d1117;
--card:#161b22;--link:#6cb6ff;--good:#3fb950;--bad:#ff7b72}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);line-height:1.45;
font:14px/1.45 system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}
main,header>div{max-width:1120px;margin:0 auto;padding:0 24px}
header{border-bottom:1px solid var(--line);padding:20px 0 14px}
h1{font-size:22px;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:17px;margin:36px 0 10px;padding-bottom:4px;border-bottom:1px solid var(--line)}
h3{font-size:14px;margin:20px 0 6px}
p{margin:6px 0}.soft{color:var(--soft)}.good{color:var(--good)}.bad{color:var(--bad)}
nav{display:flex;flex-wrap:wrap;gap:4px 16px;margin-top:10px}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
.tiles{display:flex;flex-wrap:wrap;gap:12px;margin:20px 0 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px;min-width:150px;flex:1}
.tile b{display:block;font-size:20px;font-weight:600;white-space:nowrap}
.tile span{display:block;color:var(--soft);font-size:12px}
.picture{overflow-x:auto;margin:12px 0}.picture svg{display:block}
.pictures{display:flex;flex-wrap:wrap;gap:16px}
.pictures .picture{margin:0;display:flex;align-items:start;border:1px solid var(--line);border-radius:8px;padding:14px;max-width:100%}
.pictures svg{overflow:visible}
.scroll{overflow:auto;max-height:520px;border:1px solid var(--line);border-radius:8px;margin:8px 0}
table{border-collapse:separate;border-spacing:0;width:100%;font-size:13px}
th,td{padding:5px 10px;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
td{overflow-wrap:anywhere;min-width:5em}
#table-collectives td:first-child{min-width:10em}#table-collectives td:last-child{min-width:18em}
tbody tr:last-child td{border-bottom:0}
thead th{position:sticky;top:0;background:var(--card);vertical-align:bottom;font-weight:600}
thead button{all:unset;cursor:pointer;color:inherit}thead button:focus-visible{outline:2px solid var(--link)}
th[aria-sort=ascending] button::after{content:" \2191"}th[aria-sort=descending] button::after{content:" \2193"}
#table-tactics th,#table-tactics td,#table-values th,#table-values td{padding:5px 7px;font-size:12px}
#table-values td code{font-size:11px}
.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap;min-width:0}
code,pre{font:12px/1.45 ui-monospace,'SF Mono','DejaVu Sans Mono',monospace}
pre{margin:8px 0;padding:12px;overflow:auto;max-height:640px;background:var(--card);border:1px solid var(--line);border-radius:8px}
details{margin:8px 0}summary{cursor:pointer;color:var(--link)}
input{font:inherit;color:inherit;background:var(--ground);border:1px solid var(--line);border-radius:6px;padding:4px 8px;width:260px}
footer{color:var(--soft);margin:40px 0 24px;font-size:12px}
@media(max-width:700px){main,header>div{padding:0 14px}.tile{min-width:120px}input{width:100%}
thead tr{display:flex;flex-wrap:wrap;background:var(--card)}thead th{position:static;border:0}
tbody tr{display:block;padding:4px 0;border-bottom:1px solid var(--line)}tbody tr[hidden]{display:none}
tbody td.n,tbody td,#table-collectives td{display:flex;gap:10px;min-width:0!important;padding:2px 10px;border:0;text-align:left}
td::before{content:attr(data-label);flex:0 0 96px;color:var(--soft)}}
)";

/// Filters the rows of a table by the typed words, sorts them by a column, and labels each cell
/// with the name of its column, which narrow windows show beside the cell.
inline constexpr std::string_view page_script =
    R"(for(const input of document.querySelectorAll('input[data-table]')){
const table=document.getElementById(input.dataset.table),count=input.nextElementSibling;
input.addEventListener('input',()=>{const words=input.value.toLowerCase();let shown=0;
for(const row of table.tBodies[0].rows){row.hidden=!row.textContent.toLowerCase().includes(words);shown+=!row.hidden;}
count.textContent=words?shown+' of '+table.tBodies[0].rows.length+' rows':'';});}
for(const table of document.querySelectorAll('table'))for(const row of table.tBodies[0].rows)
for(const cell of row.cells)cell.dataset.label=table.tHead.rows[0].cells[cell.cellIndex].textContent;
for(const button of document.querySelectorAll('thead button')){button.addEventListener('click',()=>{
const head=button.closest('th'),body=button.closest('table').tBodies[0],up=head.getAttribute('aria-sort')==='descending';
for(const each of head.parentNode.cells)each.removeAttribute('aria-sort');
head.setAttribute('aria-sort',up?'ascending':'descending');
const key=row=>{const cell=row.cells[head.cellIndex];return cell.dataset.v===undefined?cell.textContent:+cell.dataset.v;};
const sign=up?1:-1;
body.append(...[...body.rows].sort((a,b)=>{const x=key(a),y=key(b);return sign*(x<y?-1:x>y?1:0);}));});}
)";

}  // namespace partita::report_detail
