// Pictures that the user chose: the files of a drop, format and size by the first bytes, small previews.
import { html, useEffect, useRef } from "./view.js";

const KINDS = "jpe?g|png|webp|heic|heif|avif|gif|tiff?|bmp|jxl|jp2|psd|svg|pdf|dng|cr[23]|nef|arw|orf|rw2|raf|jfif";
const NAMES = new RegExp(`\\.(${KINDS})$`, "i");
const SYSTEM = /^(\.|thumbs\.db$|desktop\.ini$)/i;
// Pictures that the service does not change, by bytes at a place, as in src/model/sniff.c. The first row that fits
// counts.
const OTHERS = [
  [4, "ftyphei", "heic"], [4, "ftypavif", "avif"], [4, "ftypmif1", "heic"], [4, "ftyphe", "heif"],
  [4, "ftypcrx", "raw"], [4, "ftyp", "video"], [0, "GIF8", "gif"], [8, "CR\u0002", "raw"], [0, "II*\0", "tiff"],
  [0, "MM\0*", "tiff"], [0, "IIRO", "raw"], [0, "IIU\0", "raw"], [0, "FUJIFILM", "raw"], [0, "\u00ff\n", "jxl"],
  [4, "JXL ", "jxl"], [4, "jP  ", "jp2"], [0, "8BPS", "psd"], [0, "%PDF", "pdf"], [0, "BM", "bmp"],
];
const HEAD_BYTES = 262144;    // a JPEG's frame header stands behind its metadata, which is seldom larger
const HEAD_MOST = 8388608;

// Returns the files of a drop, including the files in dropped folders.
export async function filesOfDrop(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return [...transfer.files];
  const files = [];
  for (const entry of entries) await entryRead(entry, files);
  return files;
}

async function entryRead(entry, files) {
  if (entry.isFile) {
    files.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
  } else if (entry.isDirectory) {
    const reader = entry.createReader();
    let some;
    // A reader returns at most 100 entries at a time.
    do {
      some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      for (const child of some) await entryRead(child, files);
    } while (some.length > 0);
  }
}

// A folder also holds other files, such as notes. Files of the system are not mentioned.
export const isPictureName = (name) => NAMES.test(name);
export const isSystemName = (name) => SYSTEM.test(name);

// Returns {format, width, height}, of a PNG also its depth in bits, {kind} of another picture, or null. Like the
// service, it reads the bytes and ignores the name.
export async function pictureInspect(file) {
  for (let bytes = HEAD_BYTES; ; bytes *= 8) {
    const view = new DataView(await file.slice(0, bytes).arrayBuffer());
    const found = inspect(view);
    if (found !== "more") return found;
    if (bytes >= Math.min(file.size, HEAD_MOST)) return { format: "jpeg", width: 0, height: 0 };
  }
}

function inspect(view) {
  const size = view.byteLength, word = (at) => (at + 4 <= size ? view.getUint32(at) : 0);
  if (size > 3 && view.getUint16(0) === 0xffd8) return inspectJpeg(view);
  if (word(0) === 0x89504e47 && word(12) === 0x49484452) {
    return { format: "png", width: word(16), height: word(20), depth: word(24) >>> 24 };
  }
  if (word(0) === 0x52494646 && word(8) === 0x57454250) return inspectWebp(view, word(12));
  const text = new TextDecoder("latin1").decode(new Uint8Array(view.buffer, 0, Math.min(size, 1024)));
  const kind = OTHERS.find(([at, bytes]) => text.startsWith(bytes, at))?.[2] ?? (/<svg/i.test(text) ? "svg" : null);
  return kind && { kind };
}

function inspectJpeg(view) {
  let at = 2;
  while (at + 9 < view.byteLength) {
    if (view.getUint8(at) !== 0xff) { at++; continue; }
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) { at++; continue; }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { format: "jpeg", height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
    at += marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8) ? 2 : 2 + view.getUint16(at + 2);
  }
  return "more";
}

function inspectWebp(view, chunk) {
  if (view.byteLength < 30) return null;
  const little = (at, count) => Array.from({ length: count }, (_, i) => view.getUint8(at + i) * 256 ** i)
    .reduce((sum, value) => sum + value);
  if (chunk === 0x56503858) return { format: "webp", width: little(24, 3) + 1, height: little(27, 3) + 1 };
  if (chunk === 0x5650384c) {
    const bits = little(21, 4);
    return { format: "webp", width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  return { format: "webp", width: little(26, 2) & 0x3fff, height: little(28, 2) & 0x3fff };
}

// Decoding needs memory for the whole picture, so previews are made one after the other.
let previews = Promise.resolve();
const later = (work) => (previews = previews.then(work, work));

async function paint(canvas, file, box) {
  const picture = await createImageBitmap(file);
  const scale = Math.min(1, box / Math.max(picture.width, picture.height));
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  picture.close();
}

// Draws a file on a canvas, because an object URL would need another source in the policy. "onDrawn" receives whether
// the file could be drawn.
export function Preview({ file, box = 96, label, onDrawn }) {
  const canvas = useRef(null);
  useEffect(() => {
    let isGone = false;
    later(async () => {
      if (isGone || !canvas.current) return;
      const isDrawn = await paint(canvas.current, file, box).then(() => true, () => false);
      onDrawn?.(isDrawn);
    });
    return () => { isGone = true; };
  }, [file, box]);
  const role = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return html`<canvas ref=${canvas} class="thumb" width="1" height="1" ...${role}></canvas>`;
}

// Two pictures over each other; a slider moves the border.
export function Compare({ before, after, label, words }) {
  const frame = useRef(null);
  const move = (event) => frame.current.style.setProperty("--at", `${event.target.value}%`);
  return html`<figure class="compare" ref=${frame}>
    <img src=${before} alt="" /><div class="after"><img src=${after} alt="" /></div>
    <span class="tag left">${words[0]}</span><span class="tag right">${words[1]}</span>
    <input type="range" min="0" max="100" value="50" aria-label=${label} onInput=${move} /></figure>`;
}
