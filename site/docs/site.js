// The guides: search, buttons that copy code, a menu that is open where there is room. All is readable without it.

const SHOWN = 12;
const LETTERS = 90;   // of the text around a hit
let entries = null;

const plain = (text) => ` ${text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ")}`;

async function load() {
  const read = await (await fetch("/docs/search.json")).json();
  return read.map(([title, page, address, text]) => {
    const head = plain(`${title} ${page}`);
    return { title, page, address, text, head, all: head + plain(text) };
  });
}

// Every word must begin a word of the entry; words in the title count most.
function find(words) {
  const score = (entry) => words.filter((word) => entry.head.includes(` ${word}`)).length;
  return entries.filter(({ all }) => words.every((word) => all.includes(` ${word}`)))
    .sort((one, other) => score(other) - score(one)).slice(0, SHOWN);
}

function excerpt(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - LETTERS / 3);
  return (at > 0 ? "… " : "") + text.slice(at, at + LETTERS).trim() + (at + LETTERS < text.length ? " …" : "");
}

function element(name, text, ...inside) {
  const one = document.createElement(name);
  one.textContent = text;
  one.append(...inside);
  return one;
}

function show(list, words) {
  const hits = words.length ? find(words) : [];
  list.replaceChildren(...hits.map((hit) => {
    const link = element("a", "", element("strong", hit.title),
      element("small", `${hit.page}: ${excerpt(hit.text, words[0])}`));
    link.href = `/docs/${hit.address}`;
    return element("li", "", link);
  }));
  if (words.length && !hits.length)
    list.append(element("li", "", element("p", "Nothing found. Try fewer or shorter words.")));
  list.hidden = !words.length;
}

function searchStart(form) {
  const input = form.querySelector("input"), list = form.querySelector(".found-list");
  form.hidden = false;
  input.addEventListener("input", async () => {
    entries ??= await load();
    show(list, plain(input.value).split(" ").filter(Boolean));
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });
  form.addEventListener("keydown", (event) => {
    const links = [input, ...list.querySelectorAll("a")], step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") list.hidden = true;
    if (!step || list.hidden) return;
    event.preventDefault();
    links[(links.indexOf(document.activeElement) + step + links.length) % links.length].focus();
  });
  document.addEventListener("click", (event) => { if (!form.contains(event.target)) list.hidden = true; });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, textarea, select")) return;
    event.preventDefault();
    input.focus();
  });
}

function copyAdd(code) {
  const place = element("div", ""), button = element("button", "Copy");
  place.className = "copied";
  button.type = "button";
  button.className = "copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  code.replaceWith(place);
  place.append(code, button);
}

document.querySelectorAll("form.search").forEach(searchStart);
document.querySelectorAll("article pre").forEach(copyAdd);
const menu = document.querySelector(".guide-menu details"), wide = matchMedia("(min-width: 60rem)");
const menuSet = () => { if (menu) menu.open = wide.matches; };
wide.addEventListener("change", menuSet);
menuSet();
