// The checks of a picture before its upload. The service repeats them.
import { service } from "./api.js";
import { pictureInspect } from "./pictures.js";
import { t, bytes } from "./text.js";
import { takenFormats } from "./ui.js";

// Returns a file with the findings of the check. A name without a picture's ending gets an ending, because the service
// requires it.
export async function pictureRead(file) {
  const found = await pictureInspect(file).catch(() => null);
  return { id: crypto.randomUUID(), file: named(file, found?.format ?? found?.kind), ...found };
}

function named(file, kind) {
  const { formats, extractFormats, maxFileNameBytes } = service.value;
  const isOf = ({ type }) => type === `image/${kind}`;
  const isRead = ({ type }) => formats.every((one) => one.type !== type);
  const like = formats.some(isOf) ? formats : extractFormats.filter(isRead), format = like.find(isOf);
  if (!format) return file;
  let name = file.name.replace(/[\u0000-\u001f\u007f/\\]/g, "_");
  const endings = like.flatMap(({ extensions }) => extensions);
  const ending = endings.find((word) => name.toLowerCase().endsWith(word));
  const size = ending?.length ?? 0, last = size ? name.slice(-size) : format.extensions[0];
  let stem = name.slice(0, name.length - size);
  while (new TextEncoder().encode(stem + last).length > maxFileNameBytes) stem = [...stem].slice(0, -1).join("");
  name = (stem || "picture") + last;
  return name === file.name ? file : new File([file], name, { type: file.type, lastModified: file.lastModified });
}

// Returns the name of an order that has no other: "beach.jpg", or "beach.jpg + 4" for five pictures.
export function orderNameOf(pictures) {
  if (pictures.length === 0) return "";
  const { maxNameLength } = service.value, more = pictures.length > 1 ? ` + ${pictures.length - 1}` : "";
  const [, stem, ending] = pictures[0].file.name.match(/^(.+?)(\.[^.]*)?$/su), end = (ending ?? "") + more;
  const room = Math.max(1, maxNameLength - [...end].length), letters = [...stem];
  return (letters.length > room ? `${letters.slice(0, room - 1).join("")}…` : stem) + end;
}

// Returns the reason why the service would refuse the picture, or null.
export function pictureProblem({ file, format, kind, width, height }, type) {
  const { maxFileBytes, maxPixels, maxSidePixels, minSidePixels, extractFormats } = service.value;
  if (file.size === 0) return t("problem.empty");
  const isRead = type === "watermarkExtract" && extractFormats.some((one) => one.type === `image/${kind}`);
  if (!format && !isRead) return t(kind ? `problem.kind.${kind}` : "problem.format", { formats: takenFormats() });
  if (file.size > maxFileBytes) return t("problem.bytes", { size: bytes(file.size), most: bytes(maxFileBytes) });
  if (width * height > maxPixels) {
    return t("problem.pixels", { size: Math.round(width * height / 1e6), most: Math.round(maxPixels / 1e6) });
  }
  const largest = Math.max(width, height), smallest = Math.min(width, height), least = minSidePixels[type];
  if (largest > maxSidePixels) return t("problem.side", { size: largest, most: maxSidePixels });
  if (width && smallest < least) return t("problem.small", { size: smallest, least });
  return null;
}

// A PNG of less than 3.5 bits a pixel is a drawing (photos have 10 and more). In flat colours, the protected result
// usually has 0.1 to 1.1 bits a pixel more (thirteen drawings, 0.5 on average), and at most four times the size. Soft
// shading takes 10 bits a pixel, at high 11, and twice that if samples have 16 bits. So do all drawings of more than
// 16 megapixels or of 16 bits.
const DRAWING_BITS = 3.5, MORE_BITS = 0.5, MOST_TIMES = 4, FLAT_MOST_PIXELS = 16e6, SOFT_BITS = 11;
const isDrawing = ({ file, format, width, height }) =>
  format === "png" && file.size * 8 < DRAWING_BITS * width * height;
const softBytes = ({ width, height, depth }) => width * height * SOFT_BITS / 8 * (depth === 16 ? 2 : 1);

function flatBytes(drawing) {
  const { file, width, height, depth } = drawing;
  if (depth === 16 || width * height > FLAT_MOST_PIXELS) return softBytes(drawing);
  return Math.min(file.size + width * height * MORE_BITS / 8, MOST_TIMES * file.size);
}

// Returns sentences about the chosen pictures that the user should know before the order.
export function hintsOf(pictures, type) {
  if (type !== "antiAi") return [];
  const drawings = pictures.filter(isDrawing);
  const total = (bytesOf) => bytes(drawings.reduce((sum, drawing) => sum + bytesOf(drawing), 0));
  return [
    pictures.some(({ format }) => format === "jpeg") && t("hint.jpeg"),
    drawings.length > 0 &&
      t("hint.drawing", { count: drawings.length, size: total(flatBytes), most: total(softBytes) }),
  ].filter(Boolean);
}
