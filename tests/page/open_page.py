"""Opens the pages of `partita --html` in a headless browser, and checks the files of `--dump`.

    python open_page.py PARTITA MLP_FOLDER [BROWSER]

PARTITA is the program; MLP_FOLDER has mlp.mlir, mlp.spec and mlp.conf; BROWSER is a Chromium (by default the script
searches for one). A page must contain the expected texts and load nothing from outside; its pictures must be valid XML,
and its script must filter and sort without an error. If PARTITA_SCREENSHOTS names a folder, the script writes pictures
of the pages there. Exit status 77: no browser was found, and all other checks passed.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

# Appended to a page: types into the filter of the collectives, sorts by bytes twice, and reports the rows.
PROBE = """<script>
const seen=document.createElement('output');seen.id='probe';
try{const table=document.getElementById('table-collectives'),input=document.querySelector('[data-table=table-collectives]');
const rows=[...table.tBodies[0].rows],all=rows.length;
input.value='no such words';input.dispatchEvent(new Event('input'));
const none=rows.filter(r=>!r.hidden).length;
const word=rows[0].cells[0].textContent;
input.value=word;input.dispatchEvent(new Event('input'));
const some=rows.filter(r=>!r.hidden).length,expected=rows.filter(r=>r.textContent.includes(word)).length;
input.value='';input.dispatchEvent(new Event('input'));
const button=[...table.tHead.rows[0].cells].find(c=>c.textContent=='sent in total').firstChild,sorted=()=>{button.click();
return [...table.tBodies[0].rows].map(r=>+r.cells[4].dataset.v)};
const down=sorted(),up=sorted();
const ordered=down.every((v,i)=>i==0||down[i-1]>=v)&&up.every((v,i)=>i==0||up[i-1]<=v);
const fits=e=>e.scrollWidth<=e.clientWidth,wide=fits(document.documentElement);
const columns=[...document.querySelectorAll('nav,.scroll')].every(fits);
seen.textContent=[none==0,some==expected&&some>0,ordered,all==down.length,wide,columns].join(' ');
}catch(e){seen.textContent='error: '+e}
document.body.append(seen);</script>"""
LISTEN = "<script>addEventListener('error',e=>document.documentElement.dataset.error=e.message)</script>"

# Names that break the page unless they are escaped.
NAMES = ["x", "<b>bold</b>", '"quoted" & more', "</script><script>throw 1</script>", "\u00e9 \u6f22", "a" * 300]


def layers(count):
    """Returns a module of consecutive products, whose first arguments have NAMES, and a specification."""
    names = (NAMES + [f"layers.{i}.weights" for i in range(count)])[:count + 1]
    arguments = ", ".join(f"%arg{i}: tensor<256x256xf32>" for i in range(count + 1))
    lines = [f"module @layers {{\n  func.func public @main({arguments}) -> tensor<256x256xf32> {{"]
    last = "%arg0"
    for i in range(count):
        lines.append(f"    %{2 * i} = stablehlo.dot_general {last}, %arg{i + 1}, contracting_dims = [1] x [0] : "
                     "(tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>")
        lines.append(f"    %{2 * i + 1} = stablehlo.tanh %{2 * i} : tensor<256x256xf32>")
        last = f"%{2 * i + 1}"
    lines.append(f"    return {last} : tensor<256x256xf32>\n  }}\n}}\n")
    specification = ('BP: manual "B" {x: 0}\n'
                     'MP: manual "M" {"layers.*.weights": 1}\n'
                     '"Z3 <i>": manual "B" {"layers.*.weights": first_divisible_dim}\n')
    return "\n".join(lines), "\n".join(names) + "\n", specification, "axis B 4\naxis M 2\ndevice A100-80\n"


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if shutil.which(name):
            return shutil.which(name)
    return None


def need(condition, what):
    if not condition:
        sys.exit(f"open_page: {what}")


def read(path):
    with open(path, encoding="utf-8") as file:  # fails on invalid UTF-8
        return file.read()


def check_text(page, words, least_pictures=4):
    for each in words:
        need(each in page, f"the page does not hold {each!r}")
    for outside in ("http:", "https:", "url(", "@import", "<img", "<iframe"):
        need(outside not in page, f"the page has {outside}")
    pictures = re.findall(r"<svg .*?</svg>", page, re.S)
    need(len(pictures) >= least_pictures, f"{len(pictures)} pictures")
    for each in pictures:
        xml.etree.ElementTree.fromstring(each)


def check_dump(folder, names):
    files = sorted(["0-source.txt"] + [name + kind for name in names for kind in (".json", ".txt")])
    need(sorted(os.listdir(folder)) == files, f"--dump writes {sorted(os.listdir(folder))}")
    for i, name in enumerate(names):
        with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
            told = json.load(file)
        need(len(told["tactics"]) == i + 1 and told["figures"]["tactic_count"] == i + 1, f"{name} is after {i + 1} tactics")
        need(read(os.path.join(folder, name + ".txt")).startswith("func @main("), f"{name} is no program")


def check_pipeline(partita, examples, folder):
    """Checks page, trace and dump of a pipeline, and that options for one mesh are refused."""
    files = [os.path.join(examples, "layers." + kind) for kind in ("mlir", "spec", "conf")]
    page, trace, dump = (os.path.join(folder, name) for name in ("p.html", "p.json", "pipeline"))
    subprocess.run([partita, *files, "--html", page, "--trace", trace, "--dump", dump], check=True, timeout=600)
    check_text(read(page), ["layers.mlir, layers.spec", "Timeline", "F0 F1 B0 F2 B1 F3 B2 B3", "Transfers"], 1)
    need(len(json.loads(read(trace))["traceEvents"]) > 20, "the trace is too short")
    names = sorted(["0-source.txt", "calls", "calls.json", "calls.txt"] +
                   [name + kind for name in ("1-PP", "2-BP", "3-MP") for kind in (".json", ".txt")])
    need(sorted(os.listdir(dump)) == names, f"--dump writes {sorted(os.listdir(dump))}")
    calls = json.loads(read(os.path.join(dump, "calls.json")))
    need(len(os.listdir(os.path.join(dump, "calls"))) == len(calls["functions"]), "a function has no module")
    said = subprocess.run([partita, *files, "--explain", "--value", "x"], capture_output=True, text=True, timeout=600)
    need(said.returncode == 0 and "transfers:\n  m0 -> m1 " in said.stdout and 'input "x" on m0' in said.stdout,
         f"--explain says {said.stdout}{said.stderr}")
    refused = subprocess.run([partita, *files, "--emit", "annotated"], capture_output=True, text=True, timeout=600)
    need(refused.returncode == 2 and "O142 option --emit annotated" in refused.stderr, "--emit annotated is not refused")
    peak = subprocess.run([partita, *files, "--peak"], capture_output=True, text=True, timeout=600)
    need(peak.returncode == 0 and "sums and stacks" in peak.stdout, f"--peak says {peak.stdout}{peak.stderr}")
    proof = subprocess.run([partita, "--prove", *files], capture_output=True, text=True, timeout=600)
    need(proof.returncode == 0 and proof.stdout.startswith("proved: "), f"--prove says {proof.stdout}{proof.stderr}")


def browse(browser, folder, *arguments):
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
               "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile", "--enable-logging=stderr", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def open_page(browser, folder, page, words, width):
    probed = os.path.join(folder, "probed.html")
    with open(probed, "w", encoding="utf-8") as file:
        file.write(page.replace("<head>", "<head>" + LISTEN, 1).replace("</body>", PROBE + "</body>", 1))
    done = browse(browser, folder, "--virtual-time-budget=10000", f"--window-size={width},900", "--dump-dom",
                  "file://" + probed)
    dom = done.stdout
    need("</html>" in dom, f"the browser gives no page:\n{done.stderr[-2000:]}")
    need("data-error" not in dom.split("<head>")[0], f"an error of the script: {dom[:300]}")
    need("Uncaught" not in done.stderr, f"an error on the console: {done.stderr[-2000:]}")
    probe = re.search(r'<output id="probe">(.*?)</output>', dom)
    need(probe and probe.group(1) == "true true true true true true",
         f"at a width of {width}: filters to nothing, to a word, sorts, keeps all rows, as wide as the window, shows all "
         f"columns: {probe and probe.group(1)}")
    for each in words:
        need(each in dom, f"the browser does not show {each!r}")


def main():
    partita, examples = sys.argv[1], sys.argv[2]
    browser = sys.argv[3] if len(sys.argv) > 3 and sys.argv[3] else find_browser()
    with tempfile.TemporaryDirectory() as folder:
        module, names, specification, system = layers(30)
        files = []
        for name, text in (("m.mlir", module), ("m.spec", specification), ("m.conf", system), ("m.names", names)):
            files.append(os.path.join(folder, name))
            with open(files[-1], "w", encoding="utf-8") as file:
                file.write(text)
        found = os.path.join(folder, "found.spec")
        with open(found, "w", encoding="utf-8") as file:
            file.write('find: automatic "B", "M" {evaluations: 300, memory: 4 MiB}\n')
        cases = [("layers", files[:3] + ["--names", files[3]],
                  ["m.mlir, m.spec", "BP", "MP", "Z3 &lt;i&gt;", "&lt;b&gt;bold&lt;/b&gt;", "all_gather",
                   "Simulated timeline", "The program of each device"],
                  ["1-BP", "2-MP", "3-Z3__i_"]),
                 ("mlp", [os.path.join(examples, "mlp." + kind) for kind in ("mlir", "spec", "conf")],
                  ["mlp.mlir, mlp.spec", "Tactics side by side", "Memory over the program", "all_reduce", "TPUv3",
                   "leaves a sum over"], ["1-MP"]),
                 ("search", [files[0], found, files[2], "--names", files[3]],
                  ["Course of the searches", "Search of tactic find", "evaluations", "above the bound"], ["1-find"])]
        for name, arguments, words, dumped in cases:
            path = os.path.join(folder, name + ".html")
            dump = os.path.join(folder, name, "of each tactic")
            subprocess.run([partita, *arguments, "--html", path, "--dump", dump], check=True, timeout=600)
            check_dump(dump, dumped)
            page = read(path)
            check_text(page, words)
            if browser is None:
                continue
            for width in (500, 1400):  # (Chromium's windows are not narrower than 500 pixels)
                open_page(browser, folder, page, words, width)
            if os.environ.get("PARTITA_SCREENSHOTS"):
                picture = os.path.join(os.environ["PARTITA_SCREENSHOTS"], name + ".png")
                browse(browser, folder, "--window-size=1200,3000", "--screenshot=" + picture, "file://" + path)
        check_pipeline(partita, examples, folder)
    if browser is None:
        print("skipped: no Chromium was found; the pages have not been opened")
        sys.exit(77)
    print(f"{len(cases)} pages opened by {browser}")


main()
