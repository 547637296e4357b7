// FLOOR(pg) is the smallest fair competitor: node:http and a pg pool. It runs the posted SQL without a check and
// answers {columns, rows, rowCount}. run.ts starts it as another process: node bench/floor-postgres.ts CONNECTION_URL
import { Pool } from 'pg'
import { serveFloor } from './floor-server.ts'

const pool = new Pool({ connectionString: process.argv[2], max: 16 })

async function answer(body: string): Promise<string> {
  const { sql } = JSON.parse(body) as { sql: string }
  const result = await pool.query<unknown[]>({ text: sql, rowMode: 'array' })
  const columns = result.fields.map((field) => ({ name: field.name, dataType: field.dataTypeID }))
  return JSON.stringify({ columns, rows: result.rows, rowCount: result.rows.length })
}

serveFloor(answer, () => pool.end())
