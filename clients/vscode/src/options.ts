// From settings to the options of the protocol. Pure.

export interface OptionSettings {
  model: string;
  providers: Record<string, Record<string, unknown>>;
  mcpServers: Record<string, unknown>;
  inputs: unknown[];
  permissions: Record<string, unknown>;
  /** All other options of the protocol. */
  options: Record<string, unknown>;
}

/** What `initialize` brings. What is not set is left out, so that the user's own configuration file decides. */
export function initializationOptions(settings: OptionSettings): Record<string, unknown> {
  const said: Record<string, unknown> = {
    ...settings.options,
    model: settings.model,
    providers: withoutKeys(settings.providers),
    mcpServers: settings.mcpServers,
    inputs: settings.inputs,
    permissions: settings.permissions,
  };
  return Object.fromEntries(Object.entries(said).filter(([, value]) => !isEmpty(value)));
}

/** The providers whose settings hold a key, where none belongs. */
export function providersWithKeys(providers: OptionSettings["providers"]): string[] {
  return Object.keys(providers).filter((name) => providers[name]?.apiKey !== undefined);
}

/** The variable that a provider reads its key from. */
export function keyVariable(provider: string, providers: OptionSettings["providers"]): string {
  const named = providers[provider]?.apiKeyEnv;
  return typeof named === "string" && named !== "" ? named : `${provider.replaceAll(/\W/g, "_").toUpperCase()}_API_KEY`;
}

function withoutKeys(providers: OptionSettings["providers"]): OptionSettings["providers"] {
  const bare = ({ apiKey: _, ...rest }: Record<string, unknown>): Record<string, unknown> => rest;
  return Object.fromEntries(Object.entries(providers).map(([name, provider]) => [name, bare(provider)]));
}

function isEmpty(value: unknown): boolean {
  return value === "" || value == null || (typeof value === "object" && Object.keys(value).length === 0);
}
