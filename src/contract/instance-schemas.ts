// The JSON that tells the console what this installation allows, before and after the sign-in.
import { z } from 'zod'
import { count } from './schemas.ts'

const SignUpMode = z.enum(['open', 'invited', 'closed'])
const oidcName = z.string().optional().meta({ description: 'The name of the OpenID Connect provider.' })

export const SignInOptions = z.object({
  firstAccount: z
    .boolean()
    .meta({ description: 'True if there is no account yet. The first sign-up is always allowed.' }),
  setupTokenNeeded: z
    .boolean()
    .meta({ description: 'True if the first sign-up must send the setupToken from the log.' }),
  signUp: SignUpMode,
  mail: z.boolean().meta({ description: 'True if mail is configured. Addresses must then be verified.' }),
  password: z.object({ min: count, max: count }).meta({ description: 'The allowed length in characters.' }),
  methods: z.array(z.enum(['password', 'passkey', 'github', 'google', 'oidc'])),
  oidcName,
})

export const Instance = z.object({
  version: z.string(),
  publicUrl: z.string().meta({ description: 'The origin under which people and programs reach the service.' }),
  mail: z.boolean(),
  model: z.boolean().meta({ description: 'True if a language model can propose documentation.' }),
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
    .meta({ description: 'The operator’s ceilings for team settings. An absent setting has no ceiling.' }),
})
