// Passkeys through the browser's own WebAuthn functions. The service creates and checks the challenges.
import { auth } from '../../api/client.ts'
import { Told } from '../../api/failure.ts'
import type { AuthAnswer } from '../../api/types.ts'

/** Returns the account. Throws the errors of auth(), or Told if the browser returned no passkey. */
export async function signInWithPasskey(
  rememberMe: boolean,
): Promise<AuthAnswer<'POST /auth/passkey/sign-in'>['user']> {
  const options = await auth('POST /auth/passkey/sign-in-options', {})
  const response = await answered(() => {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
    return navigator.credentials.get({ publicKey })
  })
  if (!isSigned(response)) throw new Told(sentenceFor(''))
  return (await auth('POST /auth/passkey/sign-in', { response: { ...response, ...SAME }, rememberMe })).user
}

/** Creates a passkey and adds it to the account. Throws like signInWithPasskey(). */
export async function addPasskey(name: string): Promise<void> {
  const options = await auth('POST /auth/passkey/add-options', {})
  const response = await answered(() => {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON({
      ...options,
      pubKeyCredParams: [...options.pubKeyCredParams],
      excludeCredentials: options.excludeCredentials.map(({ id, type, transports = [] }) => {
        return { id, type, transports: [...transports] }
      }),
    })
    return navigator.credentials.create({ publicKey })
  })
  if (isSigned(response)) throw new Told(sentenceFor(''))
  await auth('POST /auth/passkey/add', { name, response: { ...response, ...SAME } })
}

/** The constant fields of an answer. The service accepts no extensions. */
const SAME = { type: 'public-key', clientExtensionResults: {} } as const

type Answered = ReturnType<PublicKeyCredential['toJSON']>

function isSigned(answer: Answered): answer is AuthenticationResponseJSON {
  return 'signature' in answer.response
}

async function answered(ask: () => Promise<Credential | null>): Promise<Answered> {
  try {
    const credential = await ask()
    if (credential instanceof PublicKeyCredential) return credential.toJSON()
  } catch (error) {
    throw new Told(sentenceFor(error instanceof DOMException ? error.name : ''))
  }
  throw new Told(sentenceFor(''))
}

function sentenceFor(name: string): string {
  switch (name) {
    // The browser does not reveal whether the person cancelled, waited too long, or had no passkey.
    case 'NotAllowedError':
    case 'AbortError':
      return 'No passkey was used. Try again, or continue without one.'
    case 'InvalidStateError':
      return 'This device already has a passkey of your account.'
    default:
      return 'This browser cannot use passkeys here.'
  }
}
