// The place where pictures are dropped or chosen.
import { html, useRef, useState } from "./view.js";
import { t } from "./text.js";
import { filesOfDrop } from "./pictures.js";
import { Button, Icon } from "./ui.js";

const ACCEPT = "image/jpeg,image/png,image/webp,.jpg,.jpeg,.png,.webp";
const READ = ",image/heic,image/heif,image/avif,image/tiff,image/gif,image/bmp,.heic,.heif,.avif,.tif,.tiff,.gif,.bmp";

// "isReading": also the formats that are only read.
export function Drop({ onFiles, many = true, title, hint, small, isReading }) {
  const [isOver, setOver] = useState(false);
  const files = useRef(null), folder = useRef(null);
  const chosen = (event) => { onFiles([...event.target.files]); event.target.value = ""; };
  const onDrop = async (event) => { event.preventDefault(); setOver(false); onFiles(await filesOfDrop(event.dataTransfer)); };
  return html`<div class=${`drop ${isOver ? "over" : ""} ${small ? "compact" : ""}`} onDrop=${onDrop}
      onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)}>
    <${Icon} name="upload" /><div><strong>${title}</strong>${hint && html`<p class="muted small">${hint}</p>`}</div>
    <div class="actions"><${Button} kind=${small ? "plain" : "primary"} onClick=${() => files.current.click()}>${t(many ? "drop.files" : "drop.file")}<//>
      ${many && html`<${Button} onClick=${() => folder.current.click()}>${t("drop.folder")}<//>`}</div>
    <input ref=${files} class="vh" type="file" accept=${isReading ? ACCEPT + READ : ACCEPT} multiple=${many} tabindex="-1" aria-hidden="true" onChange=${chosen} />
    ${many && html`<input ref=${folder} class="vh" type="file" webkitdirectory tabindex="-1" aria-hidden="true" onChange=${chosen} />`}
  </div>`;
}
