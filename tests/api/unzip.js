// Reads an archive with unzipper: node unzip.js stream|open ARCHIVE [FOLDER].
// stream reads from the first byte to the last, as an HTTP body; open reads the central headers.
// Prints a line of size and name for each entry, and writes its bytes into FOLDER.
"use strict";
const fs = require("fs");
const path = require("path");
const unzipper = require("unzipper");

const [way, archive, folder] = process.argv.slice(2);

function written(name, bytes) {
    console.log(`${bytes.length} ${name}`);
    if (folder !== undefined) fs.writeFileSync(path.join(folder, name), bytes);
}

async function streamed() {
    const entries = fs.createReadStream(archive).pipe(unzipper.Parse({ forceStream: true }));
    for await (const entry of entries) written(entry.path, await entry.buffer());
}

async function opened() {
    const directory = await unzipper.Open.file(archive);
    for (const file of directory.files) written(file.path, await file.buffer());
}

(way === "stream" ? streamed() : opened()).catch((error) => {
    console.error(error);
    process.exit(1);
});
