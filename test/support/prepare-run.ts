// scripts/test.ts runs `node test/support/prepare-run.ts FOLDER` before a large run, to create files that all test
// files share. Importing the service puts its compiled sources into Node’s compile cache. FOLDER gets a store without
// rows.
import { argv } from 'node:process'
import { readConfig } from '../../src/config.ts'
import { openStore } from '../../src/store/open.ts'

const [, , folder = ''] = argv
await Promise.all([import('./app.ts'), import('./shop.ts'), import('./people.ts'), import('./connected.ts')])
await using _store = await openStore(readConfig({ VITRINE_DATA_DIR: folder, VITRINE_DEMO: '0' }))
