#include "control/api/names.h"

namespace lockstep::control {

const char* ProcessRoleName(ProcessRole role) { return kProcessRoles.Name(role); }
const char* ProcessStateName(ProcessState state) { return kProcessStates.Name(state); }
const char* JobKindName(JobKind kind) { return kJobKinds.Name(kind); }
const char* TargetStateName(TargetState state) { return kTargetStates.Name(state); }
const char* CaptureStateName(CaptureState state) { return kCaptureStates.Name(state); }

bool IsFinal(TargetState state) { return state >= TargetState::kDone; }
bool IsFinal(CaptureState state) { return state >= CaptureState::kDone; }

}  // namespace lockstep::control
