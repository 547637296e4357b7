// Non-interference on the newest engine: see fuzz.ts. The other engine has its own file, so that both cores work.
import { test } from 'node:test'
import { startNewest } from '../../support/mongodb.ts'
import { COUNT, fuzz } from './fuzz.ts'

test(`answers ${COUNT} random queries as on the stripped copy: the newest engine`, (t) => fuzz(t, startNewest, { cache: false }))
