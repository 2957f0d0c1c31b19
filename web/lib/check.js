// The checks of a picture before its upload. The service repeats them.
import { pictureInspect } from "./pictures.js";
import { t, bytes, number } from "./text.js";

export const LIMITS = { maxFileBytes: 52428800, maxFiles: 100, maxPixels: 100000000, strengths: ["low", "standard", "high"] };
const SIDE_MOST = 16384;
const SIDE_LEAST = { antiAi: 64, watermarkEmbed: 256 };
const ENDINGS = { jpeg: /\.jpe?g$/i, png: /\.png$/i, webp: /\.webp$/i };
// Of formats that are only read; their kinds in pictures.js.
const READ_ENDINGS = { heic: /\.hei[cf]$/i, avif: /\.avif$/i, tiff: /\.tiff?$/i, gif: /\.gif$/i, bmp: /\.bmp$/i };
const NAME_BYTES = 255;

// A file with what the check found. A name without a picture's ending gets one, because the service requires it.
export async function pictureRead(file) {
  const found = await pictureInspect(file).catch(() => null);
  return { id: crypto.randomUUID(), file: found?.format ? named(file, found.format) : found?.kind in READ_ENDINGS ? named(file, found.kind) : file, ...found };
}

function named(file, format) {
  let name = file.name.replace(/[\u0000-\u001f\u007f/\\]/g, "_");
  const endings = format in READ_ENDINGS ? READ_ENDINGS : ENDINGS;
  const isKnown = Object.values(endings).some((ending) => ending.test(name)), ending = isKnown ? name.match(/\.\w+$/)[0] : `.${format}`;
  let stem = isKnown ? name.slice(0, -ending.length) : name;
  while (new TextEncoder().encode(stem + ending).length > NAME_BYTES) stem = [...stem].slice(0, -1).join("");
  name = (stem || "picture") + ending;
  return name === file.name ? file : new File([file], name, { type: file.type, lastModified: file.lastModified });
}

// Why the service would refuse the picture, or null.
export function pictureProblem({ file, format, kind, width, height }, type, limits = LIMITS) {
  if (file.size === 0) return t("problem.empty");
  const isRead = type === "watermarkExtract" && limits.extractFormats?.includes(`image/${kind}`);
  if (!format && !isRead) return kind ? t(`problem.kind.${kind}`) : t("problem.format");
  if (file.size > limits.maxFileBytes) return t("problem.bytes", { size: bytes(file.size), most: bytes(limits.maxFileBytes) });
  if (width * height > limits.maxPixels) {
    return t("problem.pixels", { size: number(Math.round(width * height / 1e6)), most: number(Math.round(limits.maxPixels / 1e6)) });
  }
  if (Math.max(width, height) > SIDE_MOST) return t("problem.side", { size: Math.max(width, height), most: SIDE_MOST });
  const least = limits.minSidePixels?.[type] ?? SIDE_LEAST[type] ?? 0;
  if (width && Math.min(width, height) < least) return t("problem.small", { size: Math.min(width, height), least });
  return null;
}

// Drawings have few bits a pixel as PNG: 0.1 to 2.7 (photos 10 and more). Their protected results have 2 to 10.
const DRAWING_BITS = 6, RESULT_BITS = 10;
const isDrawing = ({ file, format, width, height }) => format === "png" && file.size * 8 < DRAWING_BITS * width * height;

// What is worth knowing before the order: sentences about the chosen pictures.
export function hintsOf(pictures, type) {
  if (type !== "antiAi") return [];
  const drawings = pictures.filter(isDrawing);
  const most = drawings.reduce((sum, { width, height }) => sum + width * height * RESULT_BITS / 8, 0);
  return [
    pictures.some(({ format }) => format === "jpeg") && t("hint.jpeg"),
    drawings.length > 0 && t("hint.drawing", { count: drawings.length, size: bytes(most) }),
  ].filter(Boolean);
}
