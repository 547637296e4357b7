// Menus are rendered into the main element, because all content of a page must be in a landmark (axe rule “region”).
export const landmark = {
  get current(): HTMLElement | null {
    return document.querySelector('main')
  },
}
