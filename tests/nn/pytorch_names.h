// Made by tests/nn/reference.py with PyTorch 2.13.0.
// clang-format off
#pragma once

#include <map>
#include <string>

namespace weft {

inline const std::map<std::string, std::string> kPyTorchNames = {
    {"conv1d",
     "weight "
     "bias "},
    {"conv2d",
     "weight "
     "bias "},
    {"conv2d_same",
     "weight "
     "bias "},
    {"conv3d",
     "weight "
     "bias "},
    {"conv_transpose1d",
     "weight "
     "bias "},
    {"conv_transpose2d",
     "weight "
     "bias "},
    {"conv_transpose3d",
     "weight "
     "bias "},
    {"batch_norm_train",
     "weight "
     "bias "
     "running_mean "
     "running_var "
     "num_batches_tracked "},
    {"batch_norm",
     "weight "
     "bias "
     "running_mean "
     "running_var "
     "num_batches_tracked "},
    {"batch_norm_untracked",
     ""},
    {"instance_norm",
     "weight "
     "bias "},
    {"instance_norm_plain",
     ""},
    {"layer_norm",
     "weight "
     "bias "},
    {"group_norm",
     "weight "
     "bias "},
    {"rms_norm",
     "weight "},
    {"max_pool2d",
     ""},
    {"avg_pool1d",
     ""},
    {"avg_pool2d",
     ""},
    {"adaptive_avg",
     ""},
    {"adaptive_max",
     ""},
    {"rnn_cell",
     "weight_ih "
     "weight_hh "
     "bias_ih "
     "bias_hh "},
    {"gru_cell",
     "weight_ih "
     "weight_hh "
     "bias_ih "
     "bias_hh "},
    {"lstm_cell",
     "weight_ih "
     "weight_hh "
     "bias_ih "
     "bias_hh "},
    {"rnn",
     "weight_ih_l0 "
     "weight_hh_l0 "
     "bias_ih_l0 "
     "bias_hh_l0 "},
    {"rnn_relu",
     "weight_ih_l0 "
     "weight_hh_l0 "},
    {"gru",
     "weight_ih_l0 "
     "weight_hh_l0 "
     "bias_ih_l0 "
     "bias_hh_l0 "
     "weight_ih_l1 "
     "weight_hh_l1 "
     "bias_ih_l1 "
     "bias_hh_l1 "},
    {"lstm",
     "weight_ih_l0 "
     "weight_hh_l0 "
     "bias_ih_l0 "
     "bias_hh_l0 "
     "weight_ih_l0_reverse "
     "weight_hh_l0_reverse "
     "bias_ih_l0_reverse "
     "bias_hh_l0_reverse "
     "weight_ih_l1 "
     "weight_hh_l1 "
     "bias_ih_l1 "
     "bias_hh_l1 "
     "weight_ih_l1_reverse "
     "weight_hh_l1_reverse "
     "bias_ih_l1_reverse "
     "bias_hh_l1_reverse "},
    {"attention",
     "in_proj_weight "
     "in_proj_bias "
     "out_proj.weight "
     "out_proj.bias "},
    {"attention_sizes",
     "q_proj_weight "
     "k_proj_weight "
     "v_proj_weight "
     "out_proj.weight "},
    {"attention_causal",
     "in_proj_weight "
     "in_proj_bias "
     "out_proj.weight "
     "out_proj.bias "},
    {"attention_padded",
     "in_proj_weight "
     "in_proj_bias "
     "out_proj.weight "
     "out_proj.bias "},
    {"attention_both",
     "in_proj_weight "
     "in_proj_bias "
     "out_proj.weight "
     "out_proj.bias "},
    {"encoder_layer",
     "self_attn.in_proj_weight "
     "self_attn.in_proj_bias "
     "self_attn.out_proj.weight "
     "self_attn.out_proj.bias "
     "linear1.weight "
     "linear1.bias "
     "linear2.weight "
     "linear2.bias "
     "norm1.weight "
     "norm1.bias "
     "norm2.weight "
     "norm2.bias "},
    {"encoder_layer_first",
     "self_attn.in_proj_weight "
     "self_attn.in_proj_bias "
     "self_attn.out_proj.weight "
     "self_attn.out_proj.bias "
     "linear1.weight "
     "linear1.bias "
     "linear2.weight "
     "linear2.bias "
     "norm1.weight "
     "norm1.bias "
     "norm2.weight "
     "norm2.bias "},
    {"decoder_layer",
     "self_attn.in_proj_weight "
     "self_attn.in_proj_bias "
     "self_attn.out_proj.weight "
     "self_attn.out_proj.bias "
     "multihead_attn.in_proj_weight "
     "multihead_attn.in_proj_bias "
     "multihead_attn.out_proj.weight "
     "multihead_attn.out_proj.bias "
     "linear1.weight "
     "linear1.bias "
     "linear2.weight "
     "linear2.bias "
     "norm1.weight "
     "norm1.bias "
     "norm2.weight "
     "norm2.bias "
     "norm3.weight "
     "norm3.bias "},
    {"encoder",
     "layers.0.self_attn.in_proj_weight "
     "layers.0.self_attn.in_proj_bias "
     "layers.0.self_attn.out_proj.weight "
     "layers.0.self_attn.out_proj.bias "
     "layers.0.linear1.weight "
     "layers.0.linear1.bias "
     "layers.0.linear2.weight "
     "layers.0.linear2.bias "
     "layers.0.norm1.weight "
     "layers.0.norm1.bias "
     "layers.0.norm2.weight "
     "layers.0.norm2.bias "
     "layers.1.self_attn.in_proj_weight "
     "layers.1.self_attn.in_proj_bias "
     "layers.1.self_attn.out_proj.weight "
     "layers.1.self_attn.out_proj.bias "
     "layers.1.linear1.weight "
     "layers.1.linear1.bias "
     "layers.1.linear2.weight "
     "layers.1.linear2.bias "
     "layers.1.norm1.weight "
     "layers.1.norm1.bias "
     "layers.1.norm2.weight "
     "layers.1.norm2.bias "
     "norm.weight "
     "norm.bias "},
    {"decoder",
     "layers.0.self_attn.in_proj_weight "
     "layers.0.self_attn.in_proj_bias "
     "layers.0.self_attn.out_proj.weight "
     "layers.0.self_attn.out_proj.bias "
     "layers.0.multihead_attn.in_proj_weight "
     "layers.0.multihead_attn.in_proj_bias "
     "layers.0.multihead_attn.out_proj.weight "
     "layers.0.multihead_attn.out_proj.bias "
     "layers.0.linear1.weight "
     "layers.0.linear1.bias "
     "layers.0.linear2.weight "
     "layers.0.linear2.bias "
     "layers.0.norm1.weight "
     "layers.0.norm1.bias "
     "layers.0.norm2.weight "
     "layers.0.norm2.bias "
     "layers.0.norm3.weight "
     "layers.0.norm3.bias "
     "layers.1.self_attn.in_proj_weight "
     "layers.1.self_attn.in_proj_bias "
     "layers.1.self_attn.out_proj.weight "
     "layers.1.self_attn.out_proj.bias "
     "layers.1.multihead_attn.in_proj_weight "
     "layers.1.multihead_attn.in_proj_bias "
     "layers.1.multihead_attn.out_proj.weight "
     "layers.1.multihead_attn.out_proj.bias "
     "layers.1.linear1.weight "
     "layers.1.linear1.bias "
     "layers.1.linear2.weight "
     "layers.1.linear2.bias "
     "layers.1.norm1.weight "
     "layers.1.norm1.bias "
     "layers.1.norm2.weight "
     "layers.1.norm2.bias "
     "layers.1.norm3.weight "
     "layers.1.norm3.bias "
     "norm.weight "
     "norm.bias "},
};

}  // namespace weft
