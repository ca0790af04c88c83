// Pictures as files.

const PNG_SCALE = 2;

/** @param {SVGSVGElement} svg complete in itself: no class or variable decides how it looks */
function saveSvg(svg, name) {
  saveBlob(new Blob([svgText(svg)], { type: "image/svg+xml" }), `${name}.svg`);
}

/** @param {SVGSVGElement} svg */
async function savePng(svg, name) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await image.decode();
  const canvas = el("canvas", { width: image.width * PNG_SCALE, height: image.height * PNG_SCALE });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => saveBlob(blob, `${name}.png`), "image/png");
}

function svgText(svg) {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
}

function saveBlob(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** A name for a file: letters, digits and hyphens. */
function fileName(...parts) {
  return parts.join("-").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
}
