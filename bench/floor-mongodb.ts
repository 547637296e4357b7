// FLOOR(mongodb) is the smallest fair competitor: node:http and the client library. It runs the posted aggregate
// without a check and answers {columns, rows, rowCount}. mongodb.ts starts it: node bench/floor-mongodb.ts URI DATABASE
import { MongoClient, type Document } from 'mongodb'
import { serveFloor } from './floor-server.ts'

const client = await new MongoClient(process.argv[2] ?? '', { maxPoolSize: 16 }).connect()
const database = client.db(process.argv[3])

async function answer(body: string): Promise<string> {
  const { collection, pipeline } = JSON.parse(body) as { collection: string; pipeline: Document[] }
  const documents = await database.collection(collection).aggregate(pipeline).toArray()
  const columns = [...new Set(documents.flatMap((document) => Object.keys(document)))]
  const rows = documents.map((document) => columns.map((name) => document[name] as unknown))
  return JSON.stringify({ columns: columns.map((name) => ({ name })), rows, rowCount: rows.length })
}

serveFloor(answer, () => client.close())
