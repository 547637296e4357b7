// FLOOR(pg): the smallest honest competitor. node:http and a pg pool that runs the posted SQL unchecked and answers
// {columns, rows, rowCount}. Started by run.ts as a process of its own: node bench/floor.ts CONNECTION_URL
import { createServer } from 'node:http'
import { Pool } from 'pg'

const pool = new Pool({ connectionString: process.argv[2], max: 16 })

async function answer(body: string): Promise<string> {
  const { sql } = JSON.parse(body) as { sql: string }
  const result = await pool.query<unknown[]>({ text: sql, rowMode: 'array' })
  const columns = result.fields.map((field) => ({ name: field.name, dataType: field.dataTypeID }))
  return JSON.stringify({ columns, rows: result.rows, rowCount: result.rows.length })
}

const server = createServer((req, res) => {
  const parts: Buffer[] = []
  req.on('data', (part: Buffer) => parts.push(part))
  req.on('end', () => {
    answer(Buffer.concat(parts).toString()).then(
      (text) => res.writeHead(200, { 'content-type': 'application/json' }).end(text),
      (error: unknown) => res.writeHead(500).end(String(error)),
    )
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address !== 'string') console.log(address.port)
})
process.once('SIGTERM', () => {
  server.closeAllConnections()
  server.close()
  void pool.end()
})
