// Runs fuzz.ts on the real mongod. The newest engine has another file, so that both run at the same time.
import { test } from 'node:test'
import { startMongod } from '../../support/mongodb.ts'
import { COUNT, fuzz, SEED } from './fuzz.ts'

test(`each answer to ${COUNT} random queries equals that of the stripped copy: the real mongod (seed ${SEED})`, (t) => fuzz(t, startMongod, { seed: SEED, cache: true }))
