// `node test/support/prepare-run.ts FOLDER` prepares a large test run. It imports the service, which fills Node’s
// compile cache, and writes a store without rows to FOLDER.
import { argv } from 'node:process'
import { readConfig } from '../../src/config.ts'
import { openStore } from '../../src/store/open.ts'

const [, , folder = ''] = argv
await Promise.all([import('./app.ts'), import('./shop.ts'), import('./people.ts'), import('./connected.ts')])
await using _store = await openStore(readConfig({ VITRINE_DATA_DIR: folder, VITRINE_DEMO: '0' }))
