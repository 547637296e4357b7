// Runs fuzz.ts on the newest engine. The real mongod has another file, so that both run at the same time, with
// different queries.
import { test } from 'node:test'
import { startNewest } from '../../support/mongodb.ts'
import { COUNT, fuzz, SEED } from './fuzz.ts'

test(`each answer to ${COUNT} random queries equals that of the stripped copy: the newest engine (seed ${SEED + 1})`, (t) => fuzz(t, startNewest, { seed: SEED + 1, cache: false }))
