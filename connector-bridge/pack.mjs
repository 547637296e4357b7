// Writes the bundle for Claude Desktop: a ZIP file of the manifest and the bridge. `node pack.mjs [file]`. The same sources always give the
// same bytes, so the printed SHA-256 can be published with the file.
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { crc32, deflateRawSync } from 'node:zlib'

const FILES = ['manifest.json', 'bridge.mjs']
const HERE = new URL('./', import.meta.url)
const [target = 'vitrine.mcpb'] = process.argv.slice(2)

/** Midnight of 1 January 1980, the first date that the format allows. */
const DATE = (1 << 5) | 1
const DEFLATED = 8

const entries = []
let offset = 0
for (const name of FILES) {
  const content = await readFile(new URL(name, HERE))
  const packed = deflateRawSync(content, { level: 9 })
  entries.push({ name: Buffer.from(name), packed, size: content.length, crc: crc32(content), offset })
  offset += 30 + Buffer.byteLength(name) + packed.length
}
const central = entries.map(centralHeader)
const parts = [...entries.flatMap((entry) => [localHeader(entry), entry.packed]), ...central]
const centralBytes = central.reduce((sum, part) => sum + part.length, 0)
const zip = Buffer.concat([...parts, endRecord(entries.length, centralBytes, offset)])
await writeFile(target, zip)
process.stdout.write(`${target} ${createHash('sha256').update(zip).digest('hex')}\n`)

/** Returns the fields that both headers have in common, from the version to the length of the name. */
function common({ name, packed, size, crc }) {
  const header = Buffer.alloc(26)
  header.writeUInt16LE(20, 0)
  header.writeUInt16LE(DEFLATED, 4)
  header.writeUInt16LE(DATE, 8)
  header.writeUInt32LE(crc, 10)
  header.writeUInt32LE(packed.length, 14)
  header.writeUInt32LE(size, 18)
  header.writeUInt16LE(name.length, 22)
  return header
}

function localHeader(entry) {
  return Buffer.concat([Buffer.from('PK\x03\x04'), common(entry), entry.name])
}

function centralHeader(entry) {
  const rest = Buffer.alloc(14)
  rest.writeUInt32LE(entry.offset, 10)
  return Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), common(entry), rest, entry.name])
}

function endRecord(count, bytes, at) {
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 0, 'latin1')
  end.writeUInt16LE(count, 8)
  end.writeUInt16LE(count, 10)
  end.writeUInt32LE(bytes, 12)
  end.writeUInt32LE(at, 16)
  return end
}
