// Passkeys through the browser's own WebAuthn functions. The service makes and checks the challenges.
import { send } from '../../api/send.ts'

/** Throws Refused, or an Error if the person cancelled. */
export async function signInWithPasskey(): Promise<void> {
  const options = await (await send({ method: 'GET', path: '/auth/passkey/generate-authenticate-options' })).json()
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  const credential = await navigator.credentials.get({ publicKey })
  await send({ method: 'POST', path: '/auth/passkey/verify-authentication', body: { response: credential } })
}

/** Adds a passkey of this device to the account. */
export async function addPasskey(name: string): Promise<void> {
  const options = await (await send({ method: 'GET', path: '/auth/passkey/generate-register-options' })).json()
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
  const credential = await navigator.credentials.create({ publicKey })
  await send({ method: 'POST', path: '/auth/passkey/verify-registration', body: { response: credential, name } })
}
