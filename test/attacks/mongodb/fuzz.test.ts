// Non-interference on the real mongod: see fuzz.ts. The other engine has its own file, so that both cores work.
import { test } from 'node:test'
import { startMongod } from '../../support/mongodb.ts'
import { COUNT, fuzz } from './fuzz.ts'

test(`answers ${COUNT} random queries as on the stripped copy: the real mongod`, (t) => fuzz(t, startMongod, { cache: true }))
