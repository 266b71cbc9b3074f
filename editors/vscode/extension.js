'use strict';
// Starts `gradscope dap`, which does all the rest.

const vscode = require('vscode');

/** What starts the adapter: the setting, with the folder that is debugged in it. */
function executable(session) {
  const folder = session.workspaceFolder;
  const command = vscode.workspace.getConfiguration('gradscope', folder).get('command');
  const path = folder === undefined ? '' : folder.uri.fsPath;
  const [name, ...args] = command.map((part) => part.replaceAll('${workspaceFolder}', path));
  return new vscode.DebugAdapterExecutable(name, [...args, 'dap']);
}

/** What F5 does without a launch.json: the file at hand, from its first backward on. */
function resolved(folder, configuration) {
  if (configuration.type || configuration.request || configuration.name) {
    return configuration;
  }
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined || editor.document.languageId !== 'python') {
    return undefined;
  }
  return { type: 'gradscope', request: 'launch', name: 'Backward', program: '${file}', stopOnEntry: true };
}

exports.activate = function activate(context) {
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory('gradscope', { createDebugAdapterDescriptor: executable }),
    vscode.debug.registerDebugConfigurationProvider('gradscope', { resolveDebugConfiguration: resolved }),
  );
};
