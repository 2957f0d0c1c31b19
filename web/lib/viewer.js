// A result next to its original: as large as the frame, or with one or four pixels of the screen for each pixel.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./view.js";
import { t, bytes, number } from "./text.js";
import { Button, Notice } from "./ui.js";

// Pixels of the screen for a pixel of the picture; 0: the frame decides.
const ZOOMS = new Map([["fit", 0], ["100", 1], ["200", 2]]);
// The height of a frame: what the title, the buttons and the texts of the dialog leave of the window.
const OTHERS_PX = 270, LEAST_PX = 200;

// A canvas draws only the part in view, so the size of a picture is not limited by that of a canvas.
async function pictureOpen(source) {
  if (source instanceof File) return createImageBitmap(source);
  const image = Object.assign(new Image(), { src: source });
  await image.decode();
  return image;
}

function usePicture(source) {
  const [found, setFound] = useState({});
  useEffect(() => {
    let isGone = false, opened = null;
    setFound({});
    const show = (picture) => {
      opened = picture;
      if (isGone) picture.close?.();
      else setFound({ picture });
    };
    if (source) pictureOpen(source).then(show, () => { if (!isGone) setFound({ isBroken: true }); });
    return () => { isGone = true; opened?.close?.(); };
  }, [source]);
  return found;
}

const sizeOf = (picture) => [picture.naturalWidth ?? picture.width, picture.naturalHeight ?? picture.height];

// Draws the columns of a canvas from "from" to "to". "view" is the place of the whole picture on the canvas, in pixels
// of the screen. Another original may have another size: it is drawn with that of the result.
function columnsDraw(context, picture, view, from, to) {
  const [width, height] = sizeOf(picture), left = Math.max(from, view.x), top = Math.max(0, view.y);
  const wide = Math.min(to, view.x + view.width) - left;
  const high = Math.min(context.canvas.height, view.y + view.height) - top;
  if (width === 0 || wide <= 0 || high <= 0) return;
  const x = width / view.width, y = height / view.height;
  context.drawImage(picture, (left - view.x) * x, (top - view.y) * y, wide * x, high * y, left, top, wide, high);
}

// Returns the height of a frame whose width is known.
function heightOf([width, height], zoom, frame) {
  const ratio = devicePixelRatio, scale = ZOOMS.get(zoom) || Math.min(ratio * frame / width, 1);
  return Math.max(LEAST_PX, Math.min(height * scale / ratio, innerHeight - OTHERS_PX));
}

// Returns where the picture is, in pixels of the screen.
function viewOf([width, height], zoom, pane) {
  const ratio = devicePixelRatio, wide = pane.clientWidth * ratio, high = pane.clientHeight * ratio;
  const scale = ZOOMS.get(zoom) || Math.min(wide / width, high / height, 1);
  const place = (size, room, scrolled) => Math.round(size < room ? (room - size) / 2 : -scrolled * ratio);
  return {
    width: width * scale, height: height * scale, scale,
    x: place(width * scale, wide, pane.scrollLeft), y: place(height * scale, high, pane.scrollTop),
  };
}

const Zooms = ({ zoom, onZoom }) => html`<div class="zooms" role="group" aria-label=${t("compare.zoom")}>
  ${[...ZOOMS.keys()].map((word) => html`<${Button} key=${word} kind="plain small" aria-pressed=${word === zoom}
    onClick=${() => onZoom(word)}>${t(`compare.zoom.${word}`)}<//>`)}</div>`;

function Sizes({ picture, before, after }) {
  const [width, height] = sizeOf(picture);
  return html`<p class="facts muted small"><span>${number(width)} × ${number(height)}</span>
    ${before > 0 && html`<span>${t("compare.before")}: ${bytes(before)}</span>`}
    ${after > 0 && html`<span>${t("compare.after")}: ${bytes(after)}</span>`}</p>`;
}

// "before" is a File or null, "after" a URL and "size" its bytes, if they are known. "onUndrawn" receives a File that
// this browser cannot draw.
export function Viewer({ before, after, name, size: afterBytes, onUndrawn }) {
  const pane = useRef(null), room = useRef(null), canvas = useRef(null), frame = useRef(null), draw = useRef(null);
  const border = useRef(0.5), middle = useRef([0.5, 0.5]);
  const [zoom, setZoom] = useState("fit");
  const first = usePicture(before), second = usePicture(after), shown = second.picture;
  const size = shown && sizeOf(shown);
  useEffect(() => { if (first.isBroken) onUndrawn(before); }, [first]);

  draw.current = () => {
    const { width, height } = canvas.current, view = viewOf(size, zoom, pane.current);
    const context = canvas.current.getContext("2d"), left = Math.max(0, view.x);
    const wide = Math.min(view.width, width), at = Math.round(left + wide * border.current);
    context.clearRect(0, 0, width, height);
    context.imageSmoothingEnabled = view.scale < 1;
    context.imageSmoothingQuality = "high";
    if (first.picture) columnsDraw(context, first.picture, view, 0, at);
    columnsDraw(context, shown, view, first.picture ? at : 0, width);
    for (const [name, value] of [["--at", at], ["--from", left], ["--wide", wide]]) {
      frame.current.style.setProperty(name, `${value / devicePixelRatio}px`);
    }
  };
  // The middle of the view stays when the zoom changes.
  const lay = () => {
    const { style } = room.current, box = pane.current, scale = ZOOMS.get(zoom) / devicePixelRatio;
    box.style.setProperty("height", `${heightOf(size, zoom, frame.current.clientWidth)}px`);
    style.setProperty("width", scale ? `${size[0] * scale}px` : "100%");
    style.setProperty("height", scale ? `${size[1] * scale}px` : "100%");
    const { clientWidth: width, clientHeight: height } = box, [x, y] = middle.current;
    Object.assign(canvas.current, { width: width * devicePixelRatio, height: height * devicePixelRatio });
    canvas.current.style.setProperty("width", `${width}px`);
    canvas.current.style.setProperty("height", `${height}px`);
    box.scrollTo(x * box.scrollWidth - width / 2, y * box.scrollHeight - height / 2);
    draw.current();
  };
  useLayoutEffect(() => {
    if (!shown) return undefined;
    const watch = new ResizeObserver(lay);
    watch.observe(frame.current);
    lay();
    return () => watch.disconnect();
  }, [shown, first.picture, zoom]);

  const onScroll = ({ target: box }) => {
    if (zoom !== "fit") {
      middle.current = [(box.scrollLeft + box.clientWidth / 2) / box.scrollWidth,
        (box.scrollTop + box.clientHeight / 2) / box.scrollHeight];
    }
    draw.current();
  };
  const onClick = ({ offsetX, offsetY }) => {
    if (zoom !== "fit") return;
    const view = viewOf(size, zoom, pane.current), ratio = devicePixelRatio;
    middle.current = [(offsetX * ratio - view.x) / view.width, (offsetY * ratio - view.y) / view.height];
    setZoom("100");
  };
  // A finger scrolls the frame by itself; a mouse drags the picture.
  const onPointerDown = (event) => {
    if (event.pointerType === "mouse" && zoom !== "fit") event.target.setPointerCapture(event.pointerId);
  };
  const onPointerMove = ({ target, pointerId, movementX, movementY }) => {
    if (target.hasPointerCapture(pointerId)) pane.current.scrollBy(-movementX, -movementY);
  };
  if (second.isBroken) return html`<${Notice} kind="warning" title=${t("compare.broken")} />`;
  if (!shown) return html`<div class="skeleton" aria-busy="true"></div>`;
  return html`<${Zooms} zoom=${zoom} onZoom=${setZoom} />
    ${first.isBroken && html`<${Notice} kind="warning" title=${t("compare.undrawn")} />`}
    <figure class=${`compare viewer ${first.picture ? "" : "single"}`} ref=${frame}>
      <div class=${`pane ${zoom}`} ref=${pane} role="region" tabindex="0" aria-label=${name} onScroll=${onScroll}>
        <div ref=${room}><canvas ref=${canvas} role="img" aria-label=${name} onClick=${onClick}
          onPointerDown=${onPointerDown} onPointerMove=${onPointerMove}></canvas></div></div>
      ${first.picture && html`<span class="tag left">${t("compare.before")}</span>
        <span class="tag right">${t("compare.after")}</span>
        <input type="range" min="0" max="100" step="0.5" value=${border.current * 100}
          aria-label=${t("compare.slider")}
          onInput=${(event) => { border.current = event.target.value / 100; draw.current(); }} />`}</figure>
    <${Sizes} picture=${shown} before=${first.picture && before.size} after=${afterBytes} />`;
}
