// The place where pictures are dropped or chosen.
import { html, useRef, useState } from "./view.js";
import { service } from "./api.js";
import { t } from "./text.js";
import { filesOfDrop } from "./pictures.js";
import { Button, Icon } from "./ui.js";

// Types and endings, for systems that do not know the type of an ending.
const acceptOf = (formats) => formats.flatMap(({ type, extensions }) => [type, ...extensions]).join();

const Hidden = ({ element, ...rest }) => html`
  <input ref=${element} class="vh" type="file" tabindex="-1" aria-hidden="true" ...${rest} />`;

// "isReading": also the formats that are only read.
export function Drop({ onFiles, many = true, title, hint, small, isReading }) {
  const [isOver, setOver] = useState(false);
  const files = useRef(null), folder = useRef(null);
  const accept = acceptOf(isReading ? service.value.extractFormats : service.value.formats);
  const chosen = (event) => { onFiles([...event.target.files]); event.target.value = ""; };
  const onDragOver = (event) => { event.preventDefault(); setOver(true); };
  const onDrop = async (event) => {
    event.preventDefault();
    setOver(false);
    onFiles(await filesOfDrop(event.dataTransfer));
  };
  return html`<div class=${`drop ${isOver ? "over" : ""} ${small ? "compact" : ""}`} onDrop=${onDrop}
      onDragOver=${onDragOver} onDragLeave=${() => setOver(false)}>
    <${Icon} name="upload" />
    <div><strong>${title}</strong>${hint && html`<p class="muted small">${hint}</p>`}</div>
    <div class="actions">
      <${Button} kind=${small ? "plain" : "primary"} onClick=${() => files.current.click()}>
        ${t(many ? "drop.files" : "drop.file")}<//>
      ${many && html`<${Button} kind="plain folder" onClick=${() => folder.current.click()}>
        ${t("drop.folder")}<//>`}</div>
    <${Hidden} element=${files} accept=${accept} multiple=${many} onChange=${chosen} />
    ${many && html`<${Hidden} element=${folder} webkitdirectory onChange=${chosen} />`}
  </div>`;
}
