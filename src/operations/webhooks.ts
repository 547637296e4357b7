import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  listDeliveries,
  listWebhooks,
  requireWebhook,
  testWebhook,
  type WebhookDeps,
} from '../webhooks/webhooks.ts'
import type { Definitions } from './operation-types.ts'

type Names = 'listWebhooks' | 'createWebhook' | 'changeWebhook' | 'deleteWebhook' | 'testWebhook' | 'listDeliveries'

export function webhookOperations(deps: WebhookDeps): Pick<Definitions, Names> {
  return {
    listWebhooks: (at) => listWebhooks(deps, at.membership),
    createWebhook: (at) => createWebhook(deps, at.call, at.membership, at.body),
    changeWebhook: {
      require: (at) => requireWebhook(deps, at.membership, at.params.webhookId),
      run: (at) => changeWebhook(deps, at.call, at.membership, at.params.webhookId, at.body),
    },
    deleteWebhook: {
      require: (at) => requireWebhook(deps, at.membership, at.params.webhookId),
      run: (at) => deleteWebhook(deps, at.call, at.membership, at.params.webhookId),
    },
    testWebhook: {
      require: (at) => requireWebhook(deps, at.membership, at.params.webhookId),
      run: (at) => testWebhook(deps, at.call, at.membership, at.params.webhookId),
    },
    listDeliveries: {
      require: (at) => requireWebhook(deps, at.membership, at.params.webhookId),
      run: (at) => listDeliveries(deps, at.membership, at.params.webhookId),
    },
  }
}
