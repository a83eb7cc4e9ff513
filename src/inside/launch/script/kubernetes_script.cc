#include <fmt/format.h>

#include "base/json_writer.h"
#include "inside/launch/script/script_parts.h"

namespace lockstep::launch {
namespace {

// Texts are JSON's, which are YAML's too.
std::string Replica(const JobRequest& request, const char* kind, int64_t count) {
  std::string text = fmt::format(
      "    {}:\n      replicas: {}\n      restartPolicy: Never\n      template:\n        spec:\n          "
      "containers:\n",
      kind, count);
  text += fmt::format("            - name: pytorch  # The operator looks for this name.\n              image: {}\n",
                      JsonQuoted(request.image));
  text += "              command:\n";
  std::vector<std::string> words = {"torchrun", "--no-python",
                                    request.lockstep};  // Nodes, ranks and rendezvous by PET_ variables.
  words.insert(words.end(), request.run_words.begin(), request.run_words.end());
  if (!request.tool.empty())
    words.insert(words.end(), {"--out", "/reports/" + (request.out.empty() ? request.name : request.out)});
  words.emplace_back("--");
  words.insert(words.end(), request.command.begin(), request.command.end());
  for (const std::string& word : words) text += fmt::format("                - {}\n", JsonQuoted(word));
  if (!request.environment.empty() || !request.tool.empty()) text += "              env:\n";
  if (!request.tool.empty())
    text += "                - {name: TMPDIR, value: /scratch}  # Gigabytes while it records.\n";
  for (const std::string& variable : request.environment) {
    const size_t equals = variable.find('=');
    text += fmt::format("                - {{name: {}, value: {}}}\n", JsonQuoted(variable.substr(0, equals)),
                        JsonQuoted(variable.substr(equals + 1)));
  }
  if (request.gpus_per_node > 0)
    text += fmt::format("              resources: {{limits: {{nvidia.com/gpu: {}}}}}\n", request.gpus_per_node);
  text += "              volumeMounts:\n                - {name: shm, mountPath: /dev/shm}\n";
  if (!request.tool.empty())
    text +=
        "                - {name: scratch, mountPath: /scratch}\n                - {name: reports, mountPath: "
        "/reports}\n";
  text +=
      "          volumes:\n            - {name: shm, emptyDir: {medium: Memory}}  # NCCL and data loaders want more "
      "than 64 MB.\n";
  if (!request.tool.empty())
    text += fmt::format(
        "            - {{name: scratch, emptyDir: {{}}}}\n            - {{name: reports, persistentVolumeClaim: "
        "{{claimName: {}}}}}\n",
        JsonQuoted(request.claim));
  return text;
}

}  // namespace

std::string KubernetesScript(const JobRequest& request) {
  std::string text = Purpose(request, "kubectl apply -f FILE (needs Kubeflow's training operator)");
  if (!request.tool.empty())
    text +=
        "# The image has lockstep, the tool and the program; the claim is storage that all pods can write "
        "(ReadWriteMany).\n";
  text +=
      fmt::format("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata:\n  name: {}\n", JsonQuoted(request.name));
  if (!request.queue.empty())
    text += fmt::format("  labels: {{kueue.x-k8s.io/queue-name: {}}}\n", JsonQuoted(request.queue));
  text += fmt::format(
      "spec:\n  nprocPerNode: \"{}\"\n  runPolicy: {{activeDeadlineSeconds: {}, cleanPodPolicy: None}}\n  "
      "pytorchReplicaSpecs:\n",
      request.ranks_per_node, request.time_s);
  text += Replica(request, "Master", 1);
  if (request.nodes > 1) text += Replica(request, "Worker", request.nodes - 1);
  return text;
}

}  // namespace lockstep::launch
