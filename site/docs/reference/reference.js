// The reference: Redoc with the colours of the console's palette, which it takes as values.

const probe = document.body.appendChild(document.createElement("i"));
function color(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

const colors = (...names) => names.map((name) => color(`--pico-${name}`));
const [text, muted, line, primary] = colors("color", "muted-color", "muted-border-color", "primary");
const [back, card] = colors("background-color", "card-background-color");
const [code, codeText] = colors("code-background-color", "code-color");
const [good, goodBack, bad, badBack] = ["--good", "--good-back", "--bad", "--bad-back"].map(color);
const [warning, warningBack, busy, busyBack] = ["--warning", "--warning-back", "--busy", "--busy-back"].map(color);
// The panel of the samples is dark in both schemes.
probe.style.colorScheme = "dark";
const [panelBack, panelText, panelCode] = colors("card-background-color", "color", "background-color");
const [panelGood, panelBad, panelWarning, panelBusy] = ["--good", "--bad", "--warning", "--busy"].map(color);
probe.remove();
const fontFamily = getComputedStyle(document.body).fontFamily;
const monospace = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
const theme = {
  breakpoints: { medium: "50rem", large: "75rem" },
  colors: {
    primary: { main: primary }, success: { main: good }, warning: { main: warning },
    error: { main: bad }, text: { primary: text, secondary: muted }, border: { dark: line, light: line },
    gray: { 50: back, 100: line },
    responses: {
      success: { color: good, backgroundColor: goodBack, tabTextColor: panelGood },
      error: { color: bad, backgroundColor: badBack, tabTextColor: panelBad },
      redirect: { color: warning, backgroundColor: warningBack, tabTextColor: panelWarning },
      info: { color: busy, backgroundColor: busyBack, tabTextColor: panelBusy },
    },
  },
  schema: { nestedBackground: back, linesColor: line, typeNameColor: muted, typeTitleColor: muted,
    requireLabelColor: bad },
  typography: {
    fontFamily, fontSize: "16px", lineHeight: "1.6", headings: { fontFamily, fontWeight: "600" },
    code: { fontFamily: monospace, fontSize: "13.5px", color: codeText, backgroundColor: code },
    links: { color: primary, visited: primary, hover: primary },
  },
  sidebar: { width: "17rem", backgroundColor: card, textColor: text, activeTextColor: primary },
  fab: { backgroundColor: card, color: primary },
  rightPanel: { width: "42%", backgroundColor: panelBack, textColor: panelText },
  codeBlock: { backgroundColor: panelCode },
};

Redoc.init("openapi.json", {
  theme, scrollYOffset: "header.top", nativeScrollbars: true, hideDownloadButtons: true, requiredPropsFirst: true,
  expandSingleSchemaField: true, payloadSampleIdx: 4, jsonSamplesExpandLevel: 4, hideSchemaTitles: true,
}, document.getElementById("reference"));

// The colours are values, so the page is made again for the other scheme.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
