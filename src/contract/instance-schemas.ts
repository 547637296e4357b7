// Wire schemas of the options of an installation: one for everybody before sign-in, one for signed-in people.
import { z } from 'zod'
import { count } from './schemas.ts'

const SignUpMode = z.enum(['open', 'invited', 'closed'])
const oidcName = z.string().optional().meta({ description: 'The name of the OpenID Connect provider.' })

/** The options that the sign-in pages need. */
export const SignInOptions = z.object({
  firstAccount: z.boolean().meta({ description: 'There is no account yet. The first sign-up is always allowed.' }),
  setupTokenNeeded: z.boolean().meta({ description: 'The first sign-up must send the setupToken from the log.' }),
  signUp: SignUpMode,
  mail: z.boolean().meta({ description: 'Mail is configured. Addresses must be verified.' }),
  password: z.object({ min: count, max: count }).meta({ description: 'Characters.' }),
  methods: z.array(z.enum(['password', 'passkey', 'github', 'google', 'oidc'])),
  oidcName,
})

export const Instance = z.object({
  version: z.string(),
  publicUrl: z.string().meta({ description: 'The origin under which people and programs reach the service.' }),
  mail: z.boolean(),
  model: z.boolean().meta({ description: 'A language model can propose documentation.' }),
  signUp: SignUpMode,
  oidcName,
  allows: z.object({
    privateHosts: z.boolean(),
    applicationDefault: z.boolean(),
    bigqueryEndpoint: z.boolean(),
    sshTunnel: z.boolean(),
  }),
  ceilings: z
    .object({
      queryBudget: count.optional(),
      rowCap: count.optional(),
      maxResponseBytes: count.optional(),
      statementTimeoutMs: count.optional(),
      postgresMaxPlanCost: count.optional(),
      mongodbMaxScannedDocuments: count.optional(),
      bigqueryMaxBytes: count.optional(),
      auditRetentionDays: count.optional(),
    })
    .meta({ description: 'The highest values that team settings may have. Absent: no ceiling besides the range.' }),
})
