// `npm run openapi` writes openapi.json from the routes. A test fails if the file is outdated.
import { writeFile } from 'node:fs/promises'
import { openapi } from '../src/contract/openapi.ts'
import { ROUTES } from '../src/contract/key-routes.ts'
import { SESSION_ROUTES } from '../src/contract/signed-in-routes.ts'

const text = JSON.stringify(openapi({ ...ROUTES, ...SESSION_ROUTES }), null, 2)
await writeFile(new URL('../openapi.json', import.meta.url), `${text}\n`)
